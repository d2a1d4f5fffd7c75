package hub

// SpoolRefusal is what a Dispatch's home is told of a spooled line that its owner
// refused.
type SpoolRefusal struct {
	Request  RequestID  `json:"request_id"` // "" where the line cannot be read
	Code     Code       `json:"code"`
	Detail   string     `json:"detail"`
	Terminal TerminalID `json:"terminal_id"`
	// File is the name under which the owner keeps the line, "" for not kept.
	File string `json:"file"`
}

// Check refuses what no owner writes.
func (r SpoolRefusal) Check() error {
	for name, text := range map[string]string{"request_id": string(r.Request), "code": string(r.Code), "terminal_id": string(r.Terminal), "file": r.File} {
		if err := CheckText(name, text, maxSpoolName); err != nil {
			return err
		}
	}
	return CheckText("detail", r.Detail, MaxSubjectBytes)
}

const maxSpoolName = 128
