//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// stage is the hubs that scenarios share; each is started when the first one
// needs it.
type stage struct {
	solo func() solo
	trio func() trio

	alone sync.Mutex // held while pair is used
	pair  func() duo
}

func newStage(t *testing.T) *stage {
	s := &stage{}
	s.solo = sync.OnceValue(func() solo { return newSolo(t) })
	s.trio = sync.OnceValue(func() trio { return newTrio(t, s.solo().Hub) })
	s.pair = sync.OnceValue(func() duo { return newDuo(t) })
	return s
}

// duo is the pair of hubs, both running; the caller has them alone.
func (s *stage) duo() duo {
	d := s.pair()
	d.whole()
	return d
}

// solo is one hub with a Run and a worker that waits.
type solo struct {
	*Hub
	run    Coordinator
	worker Worker
}

func newSolo(t *testing.T) solo {
	h := StartHub(t, "mac", withBrokenAgent)
	run := h.NewRun("provoked")
	return solo{h, run, run.heldWorker(t, h)}
}

// json runs a command line with --json.
func (c Caller) json(args ...string) Result {
	c.hub.t.Helper()
	return c.CLI(append(args, "--json")...)
}

// trio is a home and its worker hub, which takes one worker, and a hub with all
// that is wrong: peers that are gone, away, replaced by another hub or another
// store, no room for another invite or unfinished request, and a broken git.
type trio struct {
	home, worker, wrong *Hub
	run, wrongRun       Coordinator
	root                string
}

func newTrio(t *testing.T, other *Hub) trio {
	x := trio{root: t.TempDir(), wrong: stoppedHub(t, "wrong", withBrokenGit)}
	x.home, x.worker = stoppedHub(t, "home"), stoppedHub(t, "worker", withConfig("limits: {workers: 1}\n"))
	introduce(x.home, x.worker, x.root, "")
	x.worker.know(x.wrong.card(hub.RoleHome))
	replaced := x.worker.card(hub.RoleWorker)
	replaced.Name, replaced.StoreID = "replaced", "store_of_before"
	x.wrong.know(replaced, madeUp("gone", hub.PeerRevoked, "https://127.0.0.1:1"),
		madeUp("away", hub.PeerActive, "https://127.0.0.1:1"), madeUp("changed", hub.PeerActive, other.Endpoint().URL))
	x.wrong.edit(fillUp)
	for _, h := range []*Hub{x.home, x.worker, x.wrong} {
		h.Start()
	}
	x.run, x.wrongRun = x.home.NewRun("at home"), x.wrong.NewRun("of all that is wrong")
	return x
}

func (x trio) place() []string {
	return []string{"--on", "worker", "--worktree", "path:" + x.root, "--agent", "sh"}
}

// madeUp is the record of a peer that nobody is.
func madeUp(name string, state hub.PeerState, address string) hub.Peer {
	return hub.Peer{
		ID: hub.NewPeerID(), Name: name, Lineage: keystore.Fingerprint([]byte(name)), Fingerprint: keystore.Fingerprint([]byte(name)),
		Addresses: []string{address}, Role: hub.RoleWorker, State: state, StoreID: "store_of_" + name,
		Grants: hub.Grants{Verbs: []string{}, Repos: []string{}},
	}
}

// fillUp opens as many invites and leaves as many requests of the operator
// unfinished as there may be, behind one that is finished since long ago.
func fillUp(tx store.Tx) error {
	for _, slot := range []string{"AAA", "BBB", "CCC", "DDD"} {
		in := hub.Invite{
			ID: hub.NewInviteID(), Slot: slot, Key: []byte(slot), Role: hub.RoleWorker, ExpiresAt: tx.Now() + hub.Micros(time.Hour.Microseconds()),
			Grants: hub.Grants{Verbs: []string{}, Repos: []string{}},
		}
		if err := tx.PutInvite(in); err != nil {
			return err
		}
	}
	operator := hub.Principal{Kind: hub.Operator}
	r := store.Receipt{Key: longAgo, Space: operator.Space(), Principal: operator.Name(), Op: "repo.add", State: store.ReceiptDone, Body: []byte("{}")}
	if err := tx.PutReceipt(r); err != nil {
		return err
	}
	r.Op, r.State, r.CreatedAt = "worker.start", store.ReceiptRunning, tx.Now()
	for range receipt.MaxUnfinished {
		r.Key = hub.NewRequestID()
		if err := tx.PutReceipt(r); err != nil {
			return err
		}
	}
	return nil
}

// longAgo is the id of a request whose answer is no longer kept.
const longAgo = "req_" + nothing

// withBrokenGit puts a git before the real one that fails as no git does.
func withBrokenGit(t testing.TB, h *Hub) {
	dir := filepath.Join(h.Home, "programs")
	must(t, os.Mkdir(dir, 0o700))
	writeProgram(t, filepath.Join(dir, "git"), "#!/bin/sh\nexit 3\n")
	h.env = append(h.env, "PATH="+dir+":"+os.Getenv("PATH"))
}

// withBrokenAgent configures the agent broken: its program is there, but cannot
// be run.
func withBrokenAgent(t testing.TB, h *Hub) {
	program := filepath.Join(h.Home, "broken")
	writeProgram(t, program, "#!/nonexistent/interpreter\n")
	withConfig("agents:\n  broken:\n    command: ["+program+"]\n    deliver: argv\n")(t, h)
}
