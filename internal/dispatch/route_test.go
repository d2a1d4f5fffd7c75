package dispatch_test

import (
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// TestReachable: a Dispatch stays with the lineage and the store that it is pinned
// to, whatever is paired since.
func TestReachable(t *testing.T) {
	t.Parallel()
	pinned := hub.Peer{ID: hub.NewPeerID(), Name: "box", Lineage: "hub_1", Fingerprint: "hub_1", StoreID: "store_1", StoreEpoch: 1, Role: hub.RoleWorker}
	in := func(state hub.PeerState) hub.Peer { p := pinned; p.State = state; return p }
	other := func(name, lineage, id string) hub.Peer {
		return hub.Peer{ID: hub.NewPeerID(), Name: name, Lineage: lineage, Fingerprint: lineage, StoreID: id, Role: hub.RoleWorker, State: hub.PeerActive}
	}
	restored, rotated, replaced := in(hub.PeerActive), in(hub.PeerActive), in(hub.PeerActive)
	restored.StoreEpoch, rotated.Fingerprint, replaced.StoreID = 7, "hub_new", "store_2"
	for name, c := range map[string]struct {
		peers []hub.Peer
		code  hub.Code
	}{
		"active":                    {[]hub.Peer{in(hub.PeerActive)}, ""},
		"pending":                   {[]hub.Peer{in(hub.PeerPending)}, ""},
		"a new epoch":               {[]hub.Peer{restored}, ""},
		"a new key of the lineage":  {[]hub.Peer{rotated}, ""},
		"another store in its row":  {[]hub.Peer{replaced}, hub.CodePeerStoreChanged},
		"revoked":                   {[]hub.Peer{in(hub.PeerRevoked)}, hub.CodePeerRevoked},
		"removed":                   {[]hub.Peer{in(hub.PeerRemoved)}, hub.CodePeerRevoked},
		"removed, others paired":    {[]hub.Peer{in(hub.PeerRemoved), other("crate", "hub_2", "store_2")}, hub.CodePeerRevoked},
		"its name is another hub's": {[]hub.Peer{in(hub.PeerRemoved), other("box", "hub_2", "store_2")}, hub.CodePeerChanged},
		"its key has another store": {[]hub.Peer{in(hub.PeerRemoved), other("box", "hub_1", "store_2")}, hub.CodePeerStoreChanged},
		"under another name":        {[]hub.Peer{in(hub.PeerRemoved), other("crate", "hub_1", "store_2")}, hub.CodePeerStoreChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.update(func(tx store.Tx) error {
				for _, p := range c.peers {
					p.Addresses, p.Grants = []string{}, hub.Grants{Verbs: []string{}, Repos: []string{}}
					if err := tx.PutPeer(p); err != nil {
						return err
					}
				}
				return nil
			})
			d := hub.Dispatch{
				ID: hub.NewDispatchID(), Server: hub.Server{PeerID: pinned.ID, Name: "box"},
				Pin: hub.Pin{Lineage: "hub_1", StoreID: "store_1", Epoch: 1},
			}
			w.view(func(rx store.Rx) error {
				if err := dispatch.Reachable(rx, d); hub.CodeOf(err) != c.code {
					t.Errorf("%v, want %q", err, c.code)
				}
				return dispatch.Reachable(rx, hub.Dispatch{ID: d.ID}) // its own
			})
		})
	}
}

// TestARemovedPeerSendsAndGetsNothing: each frame's read and write is refused.
func TestARemovedPeerSendsAndGetsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := hub.Peer{ID: hub.NewPeerID(), Name: "box", Lineage: "hub_1", Fingerprint: "hub_1", StoreID: "store_1", Role: hub.RoleMutual,
		State: hub.PeerRemoved, Addresses: []string{}, Grants: hub.Grants{Verbs: []string{}, Repos: []string{}}}
	w.update(func(tx store.Tx) error { return tx.PutPeer(p) })
	ctx, d := t.Context(), hub.NewDispatchID()
	feed := hub.FeedState{StoreID: "store_1", Epoch: 1, Position: 1}
	_, after := w.dispatch.After(ctx, p.ID, hub.ToHome, 0, 1<<20)
	_, queue := w.dispatch.Queue(ctx, p.ID, hub.ToWorker, d, 1, 1<<20)
	_, imported := w.dispatch.Import(ctx, p.ID, hub.ToHome, feed, []hub.Item{{Dispatch: d, Seq: 1, Pos: 1, ID: hub.NewMessageID(), Kind: hub.ItemStarted}})
	_, between := w.dispatch.Between(ctx, p.ID, hub.ToWorker, 0, 1, 1<<20)
	for what, err := range map[string]error{
		"acknowledged items": between, "items": after, "items again": queue, "an import": imported,
		"acks": w.dispatch.Acked(ctx, p.ID, hub.ToHome, []hub.Ack{{Dispatch: d}}),
	} {
		if !hub.IsCode(err, hub.CodePeerRevoked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := w.dispatch.PeerCondition(ctx, p.ID, hub.CodePeerChanged); err != nil {
		t.Error(err)
	}
	w.view(func(rx store.Rx) error {
		got, err := rx.Peer(p.ID)
		if got.Condition != "" {
			t.Errorf("a removed peer is in the condition %s", got.Condition)
		}
		return err
	})
}

// TestItemsComeFromTheirSideOnly: a hub that was paired anew in the other role
// drives nothing of what it drove before.
func TestItemsComeFromTheirSideOnly(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	items := []hub.Item{{Dispatch: hub.NewDispatchID(), Seq: 1, Pos: 1, ID: hub.NewMessageID(), Kind: hub.ItemStarted}}
	for what, c := range map[string]struct {
		at   *world
		peer hub.PeerID
		dir  hub.Direction
	}{
		"a worker hub as home": {p.home, p.ownerAtHome, hub.ToWorker},
		"a home as worker hub": {p.owner, p.homeAtOwner, hub.ToHome},
	} {
		feed := hub.FeedState{StoreID: "store_1", Epoch: 1, Position: 1}
		_, imported := c.at.dispatch.Import(t.Context(), c.peer, c.dir, feed, items)
		_, skipped := c.at.dispatch.Skip(t.Context(), c.peer, c.dir, feed, []hub.Want{{Dispatch: items[0].Dispatch, Seq: 2}})
		for _, err := range []error{imported, skipped} {
			if !hub.IsCode(err, hub.CodeOutOfScope) {
				t.Errorf("%s: %v, want out_of_scope", what, err)
			}
		}
	}
}
