package terminal

import (
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// A process tree belongs to the supervisor that is in it now, not to one that
// had its pid before.
func TestWithinASupervisorsTree(t *testing.T) {
	root := filepath.Join(t.TempDir(), "terminals")
	chain, err := proc.Ancestors()
	if err != nil {
		t.Fatal(err)
	}
	if len(chain) < 2 {
		t.Skip("this process has no parent here")
	}
	if _, ok, err := Within(root, chain); ok || err != nil {
		t.Errorf("without an index: %v %v", ok, err)
	}
	id, parent := hub.NewTerminalID(), chain[1]
	former := parent
	former.StartedAt--
	for _, c := range []struct {
		supervisor proc.Identity
		want       bool
	}{{former, false}, {parent, true}} {
		leave, err := enlist(root, entry{Terminal: id, Supervisor: c.supervisor})
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := Within(root, chain)
		if err != nil || ok != c.want || ok && got != id {
			t.Errorf("supervisor %+v: %s %v %v", c.supervisor, got, ok, err)
		}
		if err := leave(); err != nil {
			t.Error(err)
		}
	}
	if _, ok, err := Within(root, chain); ok || err != nil {
		t.Errorf("after the supervisor left: %v %v", ok, err)
	}
}
