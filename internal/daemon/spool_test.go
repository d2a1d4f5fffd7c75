package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/spool"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/server"
)

// drainer is the hub's side of spools, with what it was given.
type drainer struct {
	*spools
	t   *testing.T
	log bytes.Buffer

	mu       sync.Mutex
	taken    []string                           // guarded by mu; bodies, in their order
	told     map[hub.MessageID]hub.PeerID       // guarded by mu
	why      map[hub.MessageID]hub.SpoolRefusal // guarded by mu
	answer   func(server.Spooled) error         // nil takes all
	delivers int                                // guarded by mu
}

func newDrainer(t *testing.T) *drainer {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "hub.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &drainer{t: t, told: map[hub.MessageID]hub.PeerID{}, why: map[hub.MessageID]hub.SpoolRefusal{}}
	d.spools = &spools{
		root: filepath.Join(t.TempDir(), "dispatches"), store: st, log: slog.New(slog.NewTextHandler(&d.log, nil)),
		token: authority{key: []byte("key")}.Capability, told: map[hub.DispatchID]string{},
		deliver: d.deliverOne,
		tell: func(_ context.Context, home hub.PeerID, _ hub.DispatchID, n hub.MessageID, why hub.SpoolRefusal) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.told[n], d.why[n] = home, why
			return nil
		},
	}
	return d
}

func (d *drainer) deliverOne(_ context.Context, in server.Spooled) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delivers++
	if d.answer != nil {
		if err := d.answer(in); err != nil {
			return err
		}
	}
	d.taken = append(d.taken, strings.Trim(string(in.Body), `"`))
	return nil
}

// attach makes a Dispatch of home that this hub owns; its place and token are
// what its worker has.
func (d *drainer) attach(home hub.PeerID) (spool.Place, string) {
	d.t.Helper()
	p := spool.Place{Root: d.root, Terminal: hub.NewTerminalID(), Dispatch: hub.NewDispatchID()}
	err := d.store.(*sqlite.Store).Update(d.t.Context(), store.New, func(tx store.Tx) error {
		if home != "" {
			if err := tx.PutPeer(hub.Peer{ID: home, Name: "home", Lineage: string(home), Fingerprint: string(home), Role: hub.RoleHome, State: hub.PeerRemoved}); err != nil {
				return err
			}
		}
		return tx.PutAttachment(hub.Attachment{Dispatch: p.Dispatch, Home: home, Terminal: p.Terminal, Run: hub.NewRunID(), Task: hub.NewTaskID(), Capability: hub.CapActive})
	})
	if err != nil {
		d.t.Fatal(err)
	}
	token, _ := d.token(home, p.Dispatch)
	return p, token
}

func (d *drainer) append(p spool.Place, token string, texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		l := spool.Line{Request: hub.NewRequestID(), Operation: server.SpooledOperation, Body: []byte(`"` + text + `"`)}
		if err := spool.Append(context.Background(), p, token, l); err != nil {
			d.t.Error(err)
		}
	}
}

func (d *drainer) wants(texts ...string) {
	d.t.Helper()
	if got, want := strings.Join(d.taken, " "), strings.Join(texts, " "); got != want {
		d.t.Fatalf("taken are %q, want %q", got, want)
	}
}

// Spools of local Dispatches and of those of other homes are drained, those of a
// home that was removed too.
func TestASweepDrainsAllSpools(t *testing.T) {
	d := newDrainer(t)
	local, localToken := d.attach("")
	remote, remoteToken := d.attach(hub.NewPeerID())
	d.append(local, localToken, "a1", "a2")
	d.append(remote, remoteToken, "b1")
	d.sweep(t.Context())
	if slices.Sort(d.taken); len(d.told) != 0 {
		t.Errorf("told was %+v", d.why)
	}
	d.wants("a1", "a2", "b1")
	if ids, err := spool.Waiting(d.root); err != nil || len(ids) != 0 {
		t.Errorf("waiting are %v %v", ids, err)
	}
}

// What may be better later keeps its place, and so does all behind it; what never
// will is kept aside and told.
func TestRefusedOrNotYet(t *testing.T) {
	full := hub.Errorf(hub.CodeRelayQuotaExceeded, "full")
	full.AfterMS = 5000
	for name, c := range map[string]struct {
		err   error
		final bool
	}{
		"disk":       {hub.Errorf(hub.CodeStorageFull, "x"), false},
		"queue":      {full, false},
		"pace":       {hub.Errorf(hub.CodeRateLimited, "x"), false},
		"bug":        {hub.Errorf(hub.CodeInternal, "x"), false},
		"cancelled":  {context.Canceled, false},
		"fenced":     {hub.Errorf(hub.CodeDispatchInactive, "x"), true},
		"late quota": {hub.Errorf(hub.CodeRelayQuotaExceeded, "x"), true},
		"invalid":    {hub.Errorf(hub.CodeLifecycleInvalid, "x"), true},
		"mismatch":   {hub.Errorf(hub.CodeRequestMismatch, "x"), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrainer(t)
			home := hub.NewPeerID()
			p, token := d.attach(home)
			d.append(p, token, "one", "two", "three")
			bad := true
			d.answer = func(in server.Spooled) error {
				if bad && string(in.Body) == `"two"` {
					return c.err
				}
				return nil
			}
			err := d.drain(t.Context(), p.Dispatch)
			if c.final {
				if err != nil || len(d.told) != 1 {
					t.Fatalf("the drain ended with %v, told was %+v", err, d.why)
				}
				d.wants("one", "three")
				for n, why := range d.why {
					kept, err := os.ReadFile(filepath.Join(filepath.Dir(p.File()), "rejected", why.File))
					if d.told[n] != home || why.Code != hub.CodeOf(c.err) || why.Request == "" || why.Terminal != p.Terminal || err != nil || !strings.Contains(string(kept), `"two"`) {
						t.Errorf("told was %+v, kept %s %v", why, kept, err)
					}
				}
				return
			}
			if !errors.Is(err, c.err) || len(d.told) != 0 {
				t.Fatalf("the drain ended with %v, told was %+v", err, d.why)
			}
			d.wants("one")
			bad = false
			d.sweep(t.Context())
			d.wants("one", "two", "three")
		})
	}
}

// A forged line is not taken, and a line that cannot be read tells no path.
func TestLinesThatAreNotTheWorkers(t *testing.T) {
	d := newDrainer(t)
	p, token := d.attach("")
	d.append(p, token, "good")
	d.append(p, "whd_other", "forged")
	raw, err := os.ReadFile(p.File())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.File(), append([]byte("rubbish\n"), raw...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.drain(t.Context(), p.Dispatch); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.File(), 0o700); err != nil { // no spool at all
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.root, "spooled", string(p.Dispatch)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.drain(t.Context(), p.Dispatch); err != nil {
		t.Fatal(err)
	}
	d.wants("good")
	codes := map[hub.Code]int{}
	for _, why := range d.why {
		codes[why.Code]++
		if strings.Contains(why.Detail, d.root) {
			t.Errorf("a path is told: %s", why.Detail)
		}
	}
	if len(d.why) != 3 || codes[hub.CodeInvalidToken] != 1 || codes[hub.CodeInvalidJson] != 2 {
		t.Errorf("told was %+v", d.why)
	}
}

// A Dispatch that nobody knows keeps its spool, and is logged once.
func TestASpoolOfNobodyIsKept(t *testing.T) {
	d := newDrainer(t)
	p := spool.Place{Root: d.root, Terminal: hub.NewTerminalID(), Dispatch: hub.NewDispatchID()}
	d.append(p, "whd_x", "lost")
	for range 3 {
		d.sweep(t.Context())
	}
	if n := strings.Count(d.log.String(), "is not known here"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	if pending, err := spool.Pending(p); err != nil || !pending {
		t.Errorf("the spool is kept: %v %v", pending, err)
	}
}

// Two command lines append while the hub drains, by several ways at once: each
// message is taken once, and those of one sender in their order.
func TestAppendingWhileTheHubDrains(t *testing.T) {
	const each = 60
	d := newDrainer(t)
	p, token := d.attach("")
	var senders, drains sync.WaitGroup
	done := make(chan struct{})
	for sender := range 2 {
		senders.Go(func() {
			for i := range each {
				d.append(p, token, fmt.Sprintf("%d-%03d", sender, i))
			}
		})
	}
	for range 3 {
		drains.Go(func() {
			for {
				if err := d.drain(context.Background(), p.Dispatch); err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	senders.Wait()
	close(done)
	drains.Wait()
	if err := d.drain(t.Context(), p.Dispatch); err != nil {
		t.Fatal(err)
	}
	next := [2]int{}
	for _, text := range d.taken {
		var sender, i int
		if _, err := fmt.Sscanf(text, "%d-%d", &sender, &i); err != nil || i != next[sender] {
			t.Fatalf("%s came, awaited was %d %v", text, next[sender], err)
		}
		next[sender]++
	}
	if next != [2]int{each, each} {
		t.Errorf("%v came, of %d each", next, each)
	}
}

// To ask for a spool that is not there reads no store and no folder.
func TestNoSpoolCostsNothing(t *testing.T) {
	d := newDrainer(t)
	d.store = nil // it would be a panic to read it
	if err := d.drain(t.Context(), hub.NewDispatchID()); err != nil {
		t.Fatal(err)
	}
	d.sweep(t.Context())
}
