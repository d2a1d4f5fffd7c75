package work_test

import (
	"errors"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// meeting is an authority whose files are written only once both of two are.
type meeting struct {
	authority
	places chan struct{} // holds one
	met    chan struct{} // closed by the second
}

func (m meeting) WriteFile(hub.Attachment, string) (string, error) {
	select {
	case m.places <- struct{}{}:
	default:
		close(m.met)
	}
	select {
	case <-m.met:
		return "/private/dispatch.json", nil
	case <-time.After(5 * time.Second):
		return "", errors.New("the other worker's file waits for this one")
	}
}

// TestACapabilityFileWaitsForNoOther: after a rotation a former key is soon gone,
// however long the start of another worker takes.
func TestACapabilityFileWaitsForNoOther(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	for _, name := range []string{"one", "two"} {
		in := startInput(m.newTask())
		in.Spec.Name = name
		if r, err := s.Start(t.Context(), startRequest(t, "", in), in); err != nil || r.State != hub.StartReady {
			t.Fatalf("%s: %+v %v", name, r, err)
		}
	}
	s.Authority = meeting{places: make(chan struct{}, 1), met: make(chan struct{})}
	if err := s.RewriteAuthority(t.Context()); err != nil {
		t.Error(err)
	}
}
