package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// through puts wrap around the joiner's side of each pairing.
func (s *side) through(wrap func(m messenger, cut func()) messenger) {
	direct := s.reach
	s.reach = func(ctx context.Context, host string) (messenger, channel, func(), error) {
		m, ch, end, err := direct(ctx, host)
		if err != nil {
			return m, ch, end, err
		}
		return wrap(m, func() { m.(socket).ws.CloseNow() }), ch, end, nil
	}
}

// dying is a joiner that is killed behind its n-th message: from then on it does
// nothing, and its connection is gone.
type dying struct {
	messenger
	cut  func()
	at   int
	n    int
	dead chan<- struct{}
	stay <-chan struct{}
}

var errKilled = errors.New("killed")

func (d *dying) step(do func() error) error {
	err := do()
	if d.n++; d.n != d.at {
		return err
	}
	d.cut()
	close(d.dead)
	<-d.stay
	return errKilled
}

func (d *dying) Send(ctx context.Context, msg []byte) error {
	return d.step(func() error { return d.messenger.Send(ctx, msg) })
}

func (d *dying) Receive(ctx context.Context) (msg []byte, err error) {
	err = d.step(func() error { msg, err = d.messenger.Receive(ctx); return err })
	return msg, err
}

// paired demands that both sides hold one active peer, each other, and that the
// first pinned connection works.
func bothPaired(t *testing.T, inviter, joiner *side) {
	t.Helper()
	if p := joiner.only(); p.State != hub.PeerActive || p.Fingerprint != inviter.id.Fingerprint || p.StoreID != inviter.store.id {
		t.Errorf("joiner: %+v", p)
	}
	if _, err := joiner.client.Hello(t.Context(), joiner.only().ID); err != nil {
		t.Errorf("first pinned connection: %v", err)
	}
	if p := inviter.only(); p.State != hub.PeerActive || p.Fingerprint != joiner.id.Fingerprint || p.StoreID != joiner.store.id {
		t.Errorf("inviter: %+v", p)
	}
}

// TestAcceptance_F11_KilledAfterEachMessage kills either side after each of the
// six messages. The joiner's request, repeated, pairs.
func TestAcceptance_F11_KilledAfterEachMessage(t *testing.T) {
	for at := 1; at <= 6; at++ {
		t.Run(fmt.Sprintf("joiner after %d", at), func(t *testing.T) { killedJoiner(t, at) })
		t.Run(fmt.Sprintf("inviter after %d", at), func(t *testing.T) { killedInviter(t, at) })
	}
}

func killedJoiner(t *testing.T, at int) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	dead, stay := make(chan struct{}), make(chan struct{})
	var old sync.WaitGroup
	defer old.Wait()
	defer close(stay)
	b.through(func(m messenger, cut func()) messenger {
		return &dying{messenger: m, cut: cut, at: at, dead: dead, stay: stay}
	})
	in, r := JoinInput{Name: "box", URL: a.url, Code: *inv.Code}, request(t, "peer.add", "box")
	killed := b.Service
	old.Go(func() { _, _ = killed.Join(context.WithoutCancel(t.Context()), r, in) }) // nobody hears what it would have answered
	<-dead
	a.idle(t)
	b.restart()
	if got, err := b.Join(t.Context(), r, in); err != nil || got.Peer.ID != b.only().ID {
		t.Fatalf("again: %+v %v", got, err)
	}
	bothPaired(t, a, b)
}

func killedInviter(t *testing.T, at int) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	direct := b.reach
	b.through(func(m messenger, cut func()) messenger { return &cutter{messenger: m, end: cut, at: at} })
	in, r := JoinInput{Name: "box", URL: a.url, Code: *inv.Code}, request(t, "peer.add", "box")
	_, err := b.Join(t.Context(), r, in)
	if committed := at >= 4; (err == nil) != committed {
		t.Fatalf("first attempt: %v", err)
	}
	a.idle(t)
	a.restart()
	b.reach = direct
	if got, err := b.Join(t.Context(), r, in); err != nil || got.Peer.ID != b.only().ID {
		t.Fatalf("again: %+v %v", got, err)
	}
	bothPaired(t, a, b)
}

// hooked calls fn before the joiner's n-th message.
type hooked struct {
	messenger
	at int
	n  int
	fn func()
}

func (h *hooked) before() {
	if h.n++; h.n == h.at {
		h.fn()
	}
}

func (h *hooked) Send(ctx context.Context, msg []byte) error {
	h.before()
	return h.messenger.Send(ctx, msg)
}

func (h *hooked) Receive(ctx context.Context) ([]byte, error) {
	h.before()
	return h.messenger.Receive(ctx)
}

func (s *side) revoke(id hub.InviteID) error {
	_, err := s.RevokeInvite(context.Background(), request(s.t, "invite.revoke", id), id)
	return err
}

func TestAcceptance_F11_AnInviteIsTakenBackWhileItIsUsed(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	b.through(func(m messenger, _ func()) messenger {
		return &hooked{messenger: m, at: 3, fn: func() { // message 2 is there
			if err := a.revoke(inv.ID); err != nil {
				t.Error(err)
			}
		}}
	})
	_, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code})
	wantCode(t, "join", err, hub.CodeInviteExpired)
	if len(a.store.all())+len(b.store.all()) != 0 {
		t.Error("something was stored")
	}
	if st := a.store.invites[0].State(a.store.now()); st != hub.InviteRevoked {
		t.Errorf("the invite is %s", st)
	}
}

func TestInviteStates(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	used := a.invite(InviteInput{})
	if _, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *used.Code}); err != nil {
		t.Fatal(err)
	}
	burned := a.invite(InviteInput{})
	for range hub.MaxWrongProofs {
		_, err := newSide(t, "c").join(JoinInput{Name: "box", URL: a.url, Code: wrong(*burned.Code)})
		wantCode(t, "wrong", err, hub.CodePairingProofMismatch)
	}
	revoked, late, open := a.invite(InviteInput{}), a.invite(InviteInput{TTL: time.Minute}), a.invite(InviteInput{TTL: time.Hour})
	if err := errors.Join(a.revoke(revoked.ID), a.revoke(revoked.ID)); err != nil {
		t.Error(err)
	}
	a.store.advance(2 * time.Minute)
	var got []hub.InviteState
	for _, i := range a.store.invites {
		got = append(got, i.State(a.store.now()))
	}
	want := []hub.InviteState{hub.InviteUsed, hub.InviteBurned, hub.InviteRevoked, hub.InviteExpired, hub.InviteOpen}
	if !slices.Equal(got, want) {
		t.Errorf("the states are %v, want %v", got, want)
	}
	for _, over := range []hub.InviteID{used.ID, burned.ID, late.ID} {
		wantCode(t, "over", a.revoke(over), hub.CodeInviteExpired)
	}
	wantCode(t, "unknown", a.revoke(hub.NewInviteID()), hub.CodeInviteNotFound)
	if err := a.revoke(open.ID); err != nil || a.InviteOpen(t.Context()) {
		t.Errorf("the door is open: %v", err)
	}
}

func TestAcceptance_F11_TheSameJoinerTwiceAtOnce(t *testing.T) {
	for range 10 {
		a, b := newSide(t, "a"), newSide(t, "b")
		inv := a.invite(InviteInput{})
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i := range errs {
			r := request(t, "peer.add", i)
			wg.Go(func() { _, errs[i] = b.Join(t.Context(), r, JoinInput{Name: "box", URL: a.url, Code: *inv.Code}) })
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil && !hub.IsCode(err, hub.CodeNameTaken) && !hub.IsCode(err, hub.CodeInviteExpired) {
				t.Errorf("one of two: %v", err)
			}
		}
		if errs[0] != nil && errs[1] != nil {
			t.Fatalf("neither has paired: %v", errs)
		}
		bothPaired(t, a, b)
	}
}

// TestAcceptance_F14_PairingUnderSkew: who invites judges when an invite and a
// lost last message expire; the other side's clock does not matter.
func TestAcceptance_F14_PairingUnderSkew(t *testing.T) {
	for _, skew := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			a, b := newSide(t, "a"), newSide(t, "b")
			b.store.advance(skew)
			inv := a.invite(InviteInput{})
			b.through(func(m messenger, cut func()) messenger { return &cutter{messenger: m, end: cut, at: 5, lost: true} })
			if _, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code}); err != nil {
				t.Fatal(err)
			}
			a.idle(t)
			bothPaired(t, a, b)
		})
	}
}
