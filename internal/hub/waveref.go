package hub

// WaveRef says of which wave's task a Dispatch is. It is the word of the engine of
// waves and of nobody else: no body of the API holds it.
type WaveRef struct {
	Wave  WaveID `json:"wave_id"`
	Token string `json:"wave_task_id"` // of the task in its wave
}

// Session is the id of the session that all attempts at the task share.
func (r WaveRef) Session() string { return WaveSession(r.Wave, r.Token) }

// TaskToken is the task's token, "" for nil.
func (r *WaveRef) TaskToken() string {
	if r == nil {
		return ""
	}
	return r.Token
}

// Channel is a label of the task for people and logs; nothing is sent to it.
func (r WaveRef) Channel() string { return "wave." + string(r.Wave) + ".task." + r.Token }

// Check refuses what names no task of a wave; nil names none and is fine.
func (r *WaveRef) Check() error {
	switch {
	case r == nil:
		return nil
	case !ValidToken(string(r.Wave)):
		return Invalid("wave_id", "%.140q names no wave", r.Wave)
	case !ValidToken(r.Token):
		return Invalid("wave_task_id", "%.140q names no task of a wave", r.Token)
	}
	return nil
}

// WaveMark is what mail to a worker says of the wave that it works for; the zero
// value says nothing.
type WaveMark struct {
	*WaveRef
	Channel string `json:"channel,omitempty"`
}

// Mark is what mail says of r, which may be nil.
func (r *WaveRef) Mark() WaveMark {
	if r == nil {
		return WaveMark{}
	}
	return WaveMark{r, r.Channel()}
}

// TaskNamed is the Task that a worker of the Dispatch means by name: its wave's
// token stands for it too. A name of anything else stays as it is.
func (s StartSpec) TaskNamed(name, task TaskID) TaskID {
	if name != "" && string(name) == s.Wave.TaskToken() {
		return task
	}
	return name
}
