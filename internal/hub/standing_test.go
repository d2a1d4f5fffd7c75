package hub

import (
	"testing"
	"time"
)

func TestStanding(t *testing.T) {
	ready, fence := Receipt{State: StartReady}, &FenceItem{Request: "r"}
	for name, c := range map[string]struct {
		a      Attachment
		state  DispatchState
		reason string
		lives  bool
	}{
		"starting":   {Attachment{Receipt: Receipt{State: StartStarting}}, Starting, "", true},
		"unknown":    {Attachment{Receipt: Receipt{State: StartOutcomeUnknown}}, StartUnknown, "", true},
		"no start":   {Attachment{Receipt: Receipt{State: StartFailed}}, Failed, "start_failed", false},
		"at work":    {Attachment{Receipt: ready, Capability: CapActive}, Ready, "", true},
		"reported":   {Attachment{Receipt: ready, Capability: CapReported}, Ready, "reported", true},
		"gone":       {Attachment{Receipt: ready, Capability: CapFenced, ExitDone: true}, Ready, "exited", false},
		"settled":    {Attachment{Receipt: ready, Capability: CapSettled}, Ready, "settled_at_home", false},
		"fence":      {Attachment{Receipt: ready, Fence: fence}, Stopping, "", true},
		"no proof":   {Attachment{Receipt: ready, Fence: fence, Fenced: true}, StopUnknown, "", true},
		"stopped":    {Attachment{Receipt: ready, Fence: fence, Fenced: true, ExitDone: true}, Stopped, "", false},
		"late fence": {Attachment{Receipt: Receipt{State: StartFailed}, Fence: fence}, Stopping, "", true},
	} {
		state, reason := c.a.Standing()
		if state != c.state || reason != c.reason || c.a.Lives() != c.lives {
			t.Errorf("%s: %s %q, lives %v", name, state, reason, c.a.Lives())
		}
	}
}

func TestMintedAt(t *testing.T) {
	before := MicrosOf(time.Now().Truncate(time.Millisecond))
	d := Attachment{Dispatch: NewDispatchID(), Receipt: Receipt{State: StartReady}}.AsDispatch(Server{Name: "w"})
	if d.CreatedAt < before || d.CreatedAt > MicrosOf(time.Now()) || d.Server.Name != "w" || d.State != Ready {
		t.Errorf("%+v, not before %d", d, before)
	}
	for _, text := range []string{"", "dispatch_", "dispatch_x", "dispatch_!1j8zq4h5n6p7r8s9t0v1w2x3y"} {
		if at := MintedAt(text); at != 0 {
			t.Errorf("%q: %d", text, at)
		}
	}
}
