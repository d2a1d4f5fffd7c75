package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// JoinInput pairs with the hub that gave the code. This side is the home, or
// the worker with Serve, or both with Mutual; Grants are for a side that
// serves. One that joins with Serve parks streams at the inviter, which may have
// no way to dial it. The code must not be part of the request's payload: nothing derived
// from it is stored.
type JoinInput struct {
	Name, URL, Code string
	Serve, Mutual   bool
	Grants          hub.Grants
}

func (in JoinInput) role() hub.Role {
	switch {
	case in.Mutual:
		return hub.RoleMutual
	case in.Serve:
		return hub.RoleWorker
	}
	return hub.RoleHome
}

// joining is a checked JoinInput.
type joining struct {
	id      hub.PeerID
	name    string
	host    string // host:port
	address string
	code    code
	role    hub.Role
	grants  hub.Grants
	reverse bool
}

// Join pairs. Nothing is stored here before the inviter has proved that it
// knows the code; from then on the peer is active on this side. Repeating the
// request after a crash returns the peer, or pairs again from the start, which
// the inviter takes as the same pairing.
func (s *Service) Join(ctx context.Context, r receipt.Request, in JoinInput) (PeerResult, error) {
	j, err := checkJoin(in)
	if err != nil {
		return PeerResult{}, err
	}
	return receipt.Long(ctx, s.cfg.Gate, r, receipt.Operation[PeerResult]{
		Class: store.New, Definite: true,
		Begin:   func(tx store.Tx) (PeerResult, error) { return begin(tx, j) },
		Perform: func(ctx context.Context, out PeerResult) (PeerResult, error) { return s.join(ctx, j, out) },
		Observe: func(ctx context.Context, out PeerResult) (PeerResult, error) { return s.resume(ctx, j, out) },
		Unknown: func(out PeerResult) bool { return out.Peer.Fingerprint == "" },
	})
}

// Check is what Join refuses before it does or sends anything.
func (in JoinInput) Check() error {
	_, err := checkJoin(in)
	return err
}

func checkJoin(in JoinInput) (joining, error) {
	j := joining{name: in.Name, role: in.role(), reverse: in.Serve}
	if err := checkName(in.Name); err != nil {
		return j, err
	}
	u, err := parseAddress(in.URL)
	if err != nil {
		return j, err
	}
	j.host, j.address = u.Host, u.String()
	if j.code, err = parseCode(in.Code); err != nil {
		return j, err
	}
	j.grants, err = checkGrants(in.Grants, j.role.CanBe(hub.RoleWorker))
	return j, err
}

// begin reserves nothing but the id, so that a repeated request finds its own
// peer.
func begin(tx store.Tx, j joining) (PeerResult, error) {
	_, err := tx.PeerByName(j.name)
	if err == nil {
		return PeerResult{}, pairedName(j.name)
	}
	if !hub.IsCode(err, hub.CodePeerNotFound) {
		return PeerResult{}, err
	}
	return PeerResult{Peer: hub.Peer{ID: hub.NewPeerID(), Name: j.name}}, nil
}

// pairedName is taken where the peer of that name may be the one meant.
func pairedName(name string) error {
	e := hub.Errorf(hub.CodeNameTaken, "a peer named %s exists", name)
	e.Field = "name"
	e.Hint = "choose another name for another hub; to pair the same one anew, remove it first: wavehub peer remove " + name
	return e.WithNext("wavehub", "peer", "show", name)
}

// resume answers a request that was begun: with its peer, if the pairing had
// been stored, else by pairing again.
func (s *Service) resume(ctx context.Context, j joining, out PeerResult) (PeerResult, error) {
	p, err := s.Find(ctx, j.name)
	switch {
	case err == nil && (p.ID == out.Peer.ID || p.State == hub.PeerActive && len(p.Addresses) > 0 && p.Addresses[0] == j.address):
		out.Peer = p
		return out, nil
	case err == nil:
		return out, taken(j.name)
	case !hub.IsCode(err, hub.CodePeerNotFound):
		return out, err
	}
	return s.join(ctx, j, out)
}

func (s *Service) join(ctx context.Context, j joining, out PeerResult) (PeerResult, error) {
	ctx, cancel := context.WithTimeout(ctx, pairTimeout)
	defer cancel()
	m, ch, end, err := s.reach(ctx, j.host)
	if err != nil {
		return out, unreached(err)
	}
	defer end()
	j.id = out.Peer.ID
	p, finish, err := s.pair(ctx, m, ch, j)
	if err != nil {
		return out, s.explain(ctx, m, err)
	}
	out.Peer = p
	if err := finish(ctx); err != nil {
		out.Warnings = append(out.Warnings, "the last message was lost; the pairing completes with the first connection within 24 hours")
	}
	return out, nil
}

// explain tells the inviter of our refusal, and us of a lost connection.
func (s *Service) explain(ctx context.Context, m messenger, err error) error {
	if _, ok := errors.AsType[*hub.Error](err); !ok {
		return unreached(&LinkError{At: StageHello, Err: err})
	}
	if errors.Is(err, errMismatch) || hub.IsCode(err, hub.CodeInvalidArgument) {
		refuse(ctx, m, err)
	}
	return err
}

// reach opens the pairing socket at host:port; the function ends it.
type reach func(ctx context.Context, host string) (messenger, channel, func(), error)

// reachDirect dials the inviter, whose key is not known yet.
func (s *Service) reachDirect(ctx context.Context, host string) (messenger, channel, func(), error) {
	own := s.cfg.Identity.Now().Present()
	d := dialer{}
	var cs tls.ConnectionState
	t := &http.Transport{Proxy: nil}
	defer t.CloseIdleConnections()
	t.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := d.dialTLS(ctx, host, own, "")
		if err != nil {
			return nil, err
		}
		cs = conn.ConnectionState()
		return conn, nil
	}
	ws, err := dialSocket(ctx, t, "/peer/v1/pair", pairProtocol)
	if err != nil {
		return nil, channel{}, nil, err
	}
	ch, err := channelOf(&cs, own, true)
	if err != nil {
		ws.CloseNow()
		return nil, channel{}, nil, err
	}
	end := func() { ws.Close(websocket.StatusNormalClosure, "") }
	return newSocket(ws), ch, end, nil
}

// pair is messages 1 to 4 and the commit; finish is messages 5 and 6.
func (s *Service) pair(ctx context.Context, m messenger, ch channel, j joining) (p hub.Peer, finish func(context.Context) error, err error) {
	fp := fingerprintOf(ch.inviter)
	if _, ours := s.cfg.Identity.Now().Held(fp); ours {
		return p, nil, hub.Invalid("url", "is this hub itself")
	}
	theirs, want, err := s.introduce(ctx, m, ch, j)
	if err != nil {
		return p, nil, err
	}
	theirs.known = fingerprintOf(ch.joiner)
	if err := s.otherName(ctx, fp, theirs, j.name); err != nil {
		return p, nil, err
	}
	if err := sendProof(ctx, m, typeProve, want.joiner); err != nil {
		return p, nil, err
	}
	if err := receiveProof(ctx, m, typeAccept, want.inviter); err != nil {
		return p, nil, misfit(j.role, theirs.Role, err)
	}
	p, err = s.joined(ctx, j, fp, theirs)
	finish = func(ctx context.Context) error {
		if err := sendProof(ctx, m, typeConfirm, want.confirm); err != nil {
			return err
		}
		_, err := receive(ctx, m, typeDone, &step{})
		return err
	}
	return p, finish, err
}

// introduce exchanges the cards, messages 1 and 2, and derives the proofs.
func (s *Service) introduce(ctx context.Context, m messenger, ch channel, j joining) (theirs card, want proofs, err error) {
	ours, err := s.card(ctx, typeJoin, j.role, j.grants)
	if err != nil {
		return theirs, want, err
	}
	ours.Slot = j.code.slot
	msg1, err := sendJSON(ctx, m, ours)
	if err != nil {
		return theirs, want, err
	}
	msg2, err := receive(ctx, m, typeOffer, &theirs)
	if err == nil {
		err = theirs.check(fingerprintOf(ch.inviter))
	}
	if err != nil {
		return theirs, want, err
	}
	want, err = proofsOf(pairKey(s.cfg.Cost, j.code, ch.inviter), ch.transcript(msg1, msg2))
	return theirs, want, err
}

// otherName refuses to pair a hub a second time under another name: that would
// rename it for everything that names it.
func (s *Service) otherName(ctx context.Context, fp string, theirs card, name string) error {
	var known hub.Peer
	var ok bool
	err := s.cfg.Store.View(ctx, func(rx store.Rx) (err error) {
		known, ok, err = enrolled(rx, hub.Peer{Lineage: theirs.HubID, Fingerprint: fp, Proofs: theirs.Proofs})
		return err
	})
	known = lapse(known, s.cfg.Now())
	if err != nil || !ok || known.Name == name || !known.State.Trusted() {
		return err
	}
	e := hub.Errorf(hub.CodeNameTaken, "this hub is paired already, under the name %q", known.Name)
	e.Hint = "use it as it is, under that name; if it does not take this hub any more, remove it first: wavehub peer remove " + known.Name
	return e.WithNext("wavehub", "peer", "show", known.Name)
}

// misfit tells which argument the inviter has refused, where it is the roles.
// Its own words are not relied on: it gives a title alone.
func misfit(mine, theirs hub.Role, refusal error) error {
	if _, err := agree(mine, theirs); err != nil && hub.IsCode(refusal, hub.CodeInvalidArgument) {
		return err
	}
	return refusal
}

// joined stores the inviter, which has proved itself.
func (s *Service) joined(ctx context.Context, j joining, fp string, theirs card) (p hub.Peer, err error) {
	role, err := agree(j.role, theirs.Role)
	if err != nil {
		return p, err
	}
	err = s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		p, err = s.enroll(tx, hub.Peer{
			ID: j.id, Name: j.name, Lineage: theirs.HubID, Fingerprint: fp, Proofs: theirs.Proofs, Knows: theirs.known, Addresses: []string{j.address},
			Role: role.Opposite(), Grants: j.grants, State: hub.PeerActive, StoreID: theirs.StoreID,
			StoreEpoch: theirs.StoreEpoch, CreatedAt: tx.Now(), Reverse: j.reverse,
		})
		return err
	})
	return p, err
}

// unreached says what a failed connection to an inviter means.
func unreached(err error) error {
	if refusedKey(err) {
		e := hub.Errorf(hub.CodeInviteExpired, "the other hub takes no unknown keys: no invite is open there")
		e.Hint = "the code was used, has expired or was burned; make a new one with wavehub peer invite"
		return e
	}
	if e, ok := errors.AsType[*hub.Error](err); ok {
		return e
	}
	e := &hub.Error{
		Code: hub.CodeRemoteRuntimeUnavailable, Op: "pairing", Message: "the other hub cannot be reached", Err: fmt.Errorf("%w", err),
		Hint: "nothing is paired; look whether that hub runs and can be reached at this URL from here, and repeat the same request",
	}
	if le, ok := errors.AsType[*LinkError](err); ok {
		e.Message += ": stage " + le.At
	}
	return e
}
