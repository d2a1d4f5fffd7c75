package wave

import "github.com/wavehub/wavehub/internal/hub"

// waiting is what a task of a running wave waits for, "" for nothing: what the
// engine holds it back for, or what its worker's owner says.
func (s *Service) waiting(w hub.Wave, r hub.WaveRow) string {
	if w.Status != hub.WaveRunning {
		return ""
	}
	if begun(r) && !r.Dispatch.State.Final() {
		return s.waitingAtWork(r)
	}
	if l := s.engine.loop(w.ID); l != nil {
		return l.waitsFor(r.Index)
	}
	return ""
}

func (s *Service) waitingAtWork(r hub.WaveRow) string {
	switch r.Dispatch.State {
	case hub.Stopping, hub.StopUnknown:
		if r.EndedAs == "" {
			return waitOperator
		}
		return waitUnknown
	case hub.StartUnknown:
		return waitUnknown
	case hub.Starting, hub.Ready, hub.Succeeded, hub.Failed, hub.Stopped, hub.Abandoned:
	}
	o, ok := s.Work.Known(*r.Dispatch)
	if !ok {
		return ""
	}
	return waitsBy(o)
}

// waitsBy is what a worker waits for by what is known of it. One of a peer that is
// not heard waits for the peer, whatever was said last; one of which nothing is said
// is at work.
func waitsBy(o hub.Observation) string {
	switch {
	case o.Link == "down":
		return waitPeer
	case o.WaitingFor == hub.WaitsForNone, o.WaitingFor == hub.WaitsForUnknown:
		return ""
	}
	return o.WaitingFor
}
