package peer

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestSetReverseIsTheWorkersSide(t *testing.T) {
	home, worker := paired(t)
	p := worker.only()
	if p.Reverse {
		t.Error("a hub that was dialled to pair parks streams")
	}
	r := request(t, "peer.reverse", true)
	for range 2 {
		out, err := worker.SetReverse(t.Context(), r, p.Name, true)
		if err != nil || !out.Peer.Reverse || !worker.only().Reverse {
			t.Fatalf("%+v %v", out, err)
		}
	}
	out, err := worker.SetReverse(t.Context(), request(t, "peer.reverse", false), string(p.ID), false)
	if err != nil || out.Peer.Reverse || worker.only().Reverse {
		t.Errorf("off: %+v %v", out, err)
	}
	if out, err := worker.SetReverse(t.Context(), r, p.Name, true); err != nil || !out.Mutation.Replayed || worker.only().Reverse {
		t.Errorf("the old request again: %+v %v", out, err)
	}
	_, err = home.SetReverse(t.Context(), request(t, "peer.reverse", true), "box", true)
	wantCode(t, "at home", err, hub.CodeInvalidArgument)
	_, err = worker.SetReverse(t.Context(), request(t, "peer.reverse", true), "nobody", true)
	wantCode(t, "an unknown peer", err, hub.CodePeerNotFound)
	p.State = hub.PeerRevoked
	worker.edit(p)
	_, err = worker.SetReverse(t.Context(), request(t, "peer.reverse", true), string(p.ID), true)
	wantCode(t, "a revoked peer", err, hub.CodePeerRevoked)
	if home.only().Reverse || worker.only().Reverse {
		t.Error("a refusal has changed something")
	}
}

// Who parks is known from the pairing on, whatever the roles.
func TestPairingTellsWhoParks(t *testing.T) {
	for name, c := range map[string]struct {
		invite         InviteInput
		join           JoinInput
		reverse, parks bool
	}{
		"serve":            {InviteInput{As: hub.RoleHome}, JoinInput{Serve: true}, true, true},
		"serve, mutual":    {InviteInput{Mutual: true}, JoinInput{Serve: true}, true, true},
		"both, by joiner":  {InviteInput{As: hub.RoleHome}, JoinInput{Mutual: true}, false, false},
		"home":             {InviteInput{}, JoinInput{}, false, false},
		"home, by inviter": {InviteInput{Mutual: true}, JoinInput{}, false, false},
	} {
		inviter, joiner := newSide(t, "inviter"), newSide(t, "joiner")
		c.join.Name, c.join.URL, c.join.Code = "other", inviter.url, *inviter.invite(c.invite).Code
		if _, err := joiner.join(c.join); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if j, i := joiner.only(), inviter.only(); j.Reverse != c.reverse || i.Parks != c.parks || j.Parks || i.Reverse {
			t.Errorf("%s: the joiner %+v, the inviter %+v", name, j, i)
		}
	}
}
