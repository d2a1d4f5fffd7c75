package peer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	pairProtocol = "wavehub.pair.1"
	pairTimeout  = time.Minute
	maxPairings  = 8
	// confirmWindow is how long the joiner's first pinned connection can
	// stand in for a lost message 5.
	confirmWindow = 24 * time.Hour
)

// PairHandler serves the inviter's side at /peer/v1/pair. It is the only
// route that a key unknown to Admit may reach.
func (s *Service) PairHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ch, err := channelOf(r.TLS, s.shown(r.TLS), false)
		if err == nil {
			err = s.enter()
		}
		if err != nil {
			writeProblem(w, err)
			return
		}
		defer s.leave()
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{pairProtocol}})
		if err != nil {
			return // Accept has answered
		}
		defer ws.CloseNow()
		ctx, cancel := context.WithTimeout(r.Context(), pairTimeout)
		defer cancel()
		m := newSocket(ws)
		if err := s.serve(ctx, m, ch); err != nil {
			refuse(ctx, m, err)
		}
		_ = ws.Close(websocket.StatusNormalClosure, "") // the joiner may be gone
	})
}

func (s *Service) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pairings >= maxPairings {
		e := hub.Errorf(hub.CodeRateLimited, "too many pairings at once")
		e.AfterMS = s.cfg.AttemptEvery.Milliseconds()
		return e
	}
	s.pairings++
	return nil
}

func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pairings--
}

// turn spaces attempts: it waits until one interval after the one before.
func (s *Service) turn(ctx context.Context) error {
	s.mu.Lock()
	at := s.nextTry
	if now := time.Now(); at.Before(now) {
		at = now
	}
	s.nextTry = at.Add(s.cfg.AttemptEvery)
	s.mu.Unlock()
	return pause(ctx, time.Until(at))
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve is the inviter's side of one pairing, messages 1 to 6. An unknown slot
// takes the same path with a key that nothing matches.
func (s *Service) serve(ctx context.Context, m messenger, ch channel) error {
	var theirs card
	msg1, err := receive(ctx, m, typeJoin, &theirs)
	if err != nil {
		return err
	}
	fp := fingerprintOf(ch.joiner)
	if err := theirs.check(fp); err != nil {
		return err
	}
	theirs.known = fingerprintOf(ch.inviter)
	if err := s.turn(ctx); err != nil {
		return err
	}
	inv, known, err := s.inviteOf(ctx, theirs.Slot)
	if err != nil {
		return err
	}
	ours, err := s.card(ctx, typeOffer, inv.Role, inv.Grants)
	if err != nil {
		return err
	}
	msg2, err := sendJSON(ctx, m, ours)
	if err != nil {
		return err
	}
	want, err := proofsOf(inv.Key, ch.transcript(msg1, msg2))
	if err != nil {
		return err
	}
	return s.prove(ctx, m, inv, known, fp, theirs, want)
}

// inviteOf finds the newest invite of a slot. For an unknown one it returns
// what an open invite would show, and a random key.
func (s *Service) inviteOf(ctx context.Context, slot string) (inv hub.Invite, known bool, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error { inv, known, err = rx.InviteBySlot(slot); return err })
	if err != nil || known {
		return inv, known, err
	}
	open, err := s.openInvites(ctx)
	if len(open) > 0 {
		inv = open[0]
	} else {
		inv = hub.Invite{Role: hub.RoleWorker, Grants: hub.Grants{Verbs: []string{hub.GrantStart, hub.GrantRead, hub.GrantProxy}}}
	}
	inv.ID, inv.Key = "", random(32)
	return inv, false, err
}

func (s *Service) card(ctx context.Context, kind string, role hub.Role, g hub.Grants) (card, error) {
	id, epoch, err := s.self(ctx)
	addresses, own := orEmpty(s.cfg.Addresses()), s.cfg.Identity.Now()
	return card{
		Type: kind, HubID: own.HubID, Proofs: own.Lineage.Bytes(), StoreID: id, StoreEpoch: epoch, Role: role, Nonce: random(32),
		Contracts: []string{hub.ContractFederation}, Name: s.cfg.Name,
		Addresses: addresses[:min(len(addresses), hub.MaxAddresses)],
		Grants:    granted{Verbs: orEmpty(g.Verbs), MaxWorkers: g.MaxWorkers},
	}, err
}

// prove is messages 3 to 6. The joiner proves first.
func (s *Service) prove(ctx context.Context, m messenger, inv hub.Invite, known bool, fp string, theirs card, want proofs) error {
	err := receiveProof(ctx, m, typeProve, want.joiner)
	started := time.Now()
	if errors.Is(err, errMismatch) {
		if known {
			if err := s.countWrong(ctx, inv.ID); err != nil {
				return err
			}
		}
		return errors.Join(errMismatch, pause(ctx, s.cfg.FailureAfter-time.Since(started)))
	}
	if err != nil {
		return err
	}
	p, err := s.accept(ctx, inv.ID, fp, theirs)
	if err != nil {
		return err
	}
	if err := sendProof(ctx, m, typeAccept, want.inviter); err != nil {
		return err
	}
	if err := receiveProof(ctx, m, typeConfirm, want.confirm); err != nil {
		return err
	}
	if _, err := s.confirm(ctx, p.ID); err != nil {
		return err
	}
	_, err = sendJSON(ctx, m, step{Type: typeDone})
	return err
}

// countWrong is durable before the joiner hears of it.
func (s *Service) countWrong(ctx context.Context, id hub.InviteID) error {
	return s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		inv, err := tx.Invite(id)
		if err != nil || inv.Used {
			return err
		}
		inv.Wrong++
		inv.Used = inv.Wrong >= hub.MaxWrongProofs
		return tx.SaveInvite(inv)
	})
}

// accept takes the invite for the key that proved its code, and stores the
// peer as pending. The same key may come again within the TTL, because its
// message 4 may have been lost; what it says of itself then counts.
func (s *Service) accept(ctx context.Context, id hub.InviteID, fp string, theirs card) (hub.Peer, error) {
	var p hub.Peer
	err := s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		inv, err := tx.Invite(id)
		switch {
		case err != nil:
			return err
		case inv.ExpiresAt <= tx.Now():
			return hub.Errorf(hub.CodeInviteExpired, "the invite has expired")
		case !bound(inv, s.cfg.Identity.Now()):
			return hub.Errorf(hub.CodeInviteExpired, "this hub's key was rotated since the invite")
		case inv.Used && inv.UsedBy != fp:
			return hub.Errorf(hub.CodeInviteExpired, "the invite has been used or burned")
		case inv.Used:
			if p, err = tx.Peer(inv.Joined); err == nil && p.State != hub.PeerPending {
				err = hub.Errorf(hub.CodeInviteExpired, "the invite has been used")
			}
			if err != nil {
				return err
			}
		}
		if p, err = s.newcomer(tx, inv, fp, theirs); err != nil {
			return err
		}
		inv.Used, inv.UsedBy, inv.Joined = true, fp, p.ID
		return tx.SaveInvite(inv)
	})
	return p, err
}

func (s *Service) newcomer(tx store.Tx, inv hub.Invite, fp string, theirs card) (hub.Peer, error) {
	role, err := agree(inv.Role, theirs.Role)
	if err != nil {
		return hub.Peer{}, err
	}
	name, err := s.nameFor(tx, fp, theirs)
	if err != nil {
		return hub.Peer{}, err
	}
	return s.enroll(tx, hub.Peer{
		ID: hub.NewPeerID(), Name: name, Lineage: theirs.HubID, Fingerprint: fp, Proofs: theirs.Proofs, Knows: theirs.known, Addresses: orEmpty(theirs.Addresses),
		Role: role.Opposite(), Grants: inv.Grants, State: hub.PeerPending, StoreID: theirs.StoreID,
		StoreEpoch: theirs.StoreEpoch, CreatedAt: tx.Now(), ConfirmUntil: tx.Now().Add(confirmWindow),
		Parks: theirs.Role == hub.RoleWorker,
	})
}

// nameFor keeps the name of a key that was paired before, or of one before it.
func (s *Service) nameFor(tx store.PeerReader, fp string, theirs card) (string, error) {
	old, known, err := enrolled(tx, hub.Peer{Lineage: theirs.HubID, Fingerprint: fp, Proofs: theirs.Proofs})
	switch {
	case err != nil:
		return "", err
	case known && old.State != hub.PeerRemoved:
		return old.Name, nil
	}
	return freeName(tx, tidyName(theirs.Name), fp)
}

func writeProblem(w http.ResponseWriter, err error) {
	code := hub.CodeOf(err)
	info := code.Info()
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(info.Status)
	body := map[string]any{"code": code, "title": info.Title, "status": info.Status, "retry": info.Retry}
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
