package hub

// Standing is where an attempt that was started is as its owner knows it: the owner proves starts
// and stops, and what settled the attempt is its home's to say. reason says what
// the state does not.
func (a Attachment) Standing() (state DispatchState, reason string) {
	switch {
	case a.Fence != nil && !a.Fenced:
		return Stopping, ""
	case a.Fence != nil && !a.ExitDone:
		return StopUnknown, ""
	case a.Fence != nil:
		return Stopped, ""
	case a.Receipt.State == StartFailed:
		return Failed, "start_failed"
	case a.Receipt.State == StartOutcomeUnknown:
		return StartUnknown, ""
	case a.Receipt.State == StartStarting:
		return Starting, ""
	case a.Capability == CapSettled:
		return Ready, "settled_at_home"
	case a.Capability == CapReported:
		return Ready, "reported"
	case a.ExitDone:
		return Ready, "exited"
	}
	return Ready, ""
}

// Lives reports whether the owner still has something of the attempt to look
// after, or its home to settle.
func (a Attachment) Lives() bool {
	state, _ := a.Standing()
	return !state.Final() && !a.ExitDone && !a.Capability.Ended()
}

// AsDispatch is the attempt as its owner shows it to its home.
func (a Attachment) AsDispatch(owner Server) Dispatch {
	state, reason := a.Standing()
	return Dispatch{
		ID: a.Dispatch, Task: a.Task, Run: a.Run, State: state, Reason: reason, Server: owner, CreatedAt: MintedAt(string(a.Dispatch)),
	}
}
