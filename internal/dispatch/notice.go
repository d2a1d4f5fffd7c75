package dispatch

import (
	"cmp"
	"context"
	"maps"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Kinds of notices, as their payload names them.
const (
	noticePeerState  = "peer_state"
	noticeSetupState = "setup_state"

	noticeSpoolRejected = "spool_rejected"
)

// notice is mail that the home writes itself, from its own facts.
type notice struct {
	id            hub.MessageID // "" mints one
	subject, body string
	payload       any  // names its kind
	history       bool // it is to be read, and wakes nobody
}

func postNotice(tx store.Tx, run hub.RunID, n notice) error {
	payload, err := encode(n.payload)
	if err != nil {
		return err
	}
	_, err = tx.Append(hub.Message{
		ID: cmp.Or(n.id, hub.NewMessageID()), Run: run, From: hubName, To: run.Box(), Type: hub.TypeNotice,
		Subject: n.subject, Body: n.body, Payload: payload, History: n.history, CreatedAt: tx.Now(),
	})
	return err
}

// Kinds of the notices that WaveNotice posts.
const (
	NoticeWaveState      = "wave_state"
	NoticeBudgetExceeded = "budget_exceeded"
	NoticeWorkerWaiting  = noticeWorkerWaiting
)

// WaveNotice posts what the engine of waves has to tell a Run: a notice of the hub
// in the Run's mailbox, made with the transaction. kind is one of the Notice
// constants and becomes the payload's, over any that is there. A subject or body that
// is too long is cut; a payload that makes the message too large is too_large.
func WaveNotice(tx store.Tx, run hub.RunID, kind, subject, body string, payload map[string]any) error {
	said := maps.Clone(payload)
	if said == nil {
		said = map[string]any{}
	}
	said["kind"] = kind
	raw, err := encode(said)
	if err != nil {
		return err
	}
	n := notice{subject: hub.Cut(subject, hub.MaxSubjectBytes), body: hub.Cut(body, hub.MaxBodyBytes), payload: said}
	if err := hub.CheckMessage(hub.Message{Subject: n.subject, Body: n.body, Payload: raw}); err != nil {
		return err
	}
	return postNotice(tx, run, n)
}

// PeerCondition records what holds the link to a peer that only a person can
// change, "" for nothing. Each Run that has a live Dispatch there is told once
// per change: a link that is merely down is presence, not mail.
func (s *Service) PeerCondition(ctx context.Context, id hub.PeerID, code hub.Code) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		p, err := tx.Peer(id)
		if err != nil || p.Condition == code || p.State == hub.PeerRemoved {
			return err
		}
		p.Condition = code
		if err := tx.SavePeer(p); err != nil {
			return err
		}
		return tellRuns(tx, p)
	})
}

func tellRuns(tx store.Tx, p hub.Peer) error {
	ids, err := liveThere(tx, p.ID)
	if err != nil {
		return err
	}
	for _, r := range ids.runs {
		if err := postNotice(tx, r, peerNotice(p, ids.of[r])); err != nil {
			return err
		}
	}
	return nil
}

// liveByRun is the live Dispatches at a peer, of each Run in the order found.
type liveByRun struct {
	runs []hub.RunID
	of   map[hub.RunID][]hub.DispatchID
}

const livePage = 200

func liveThere(tx store.DispatchReader, peer hub.PeerID) (liveByRun, error) {
	out := liveByRun{of: map[hub.RunID][]hub.DispatchID{}}
	p := store.Page{Limit: livePage}
	for {
		ds, next, err := tx.DispatchList(store.DispatchFilter{Peer: peer, Live: true}, p)
		if err != nil {
			return out, err
		}
		for _, d := range ds {
			if out.of[d.Run] == nil {
				out.runs = append(out.runs, d.Run)
			}
			out.of[d.Run] = append(out.of[d.Run], d.ID)
		}
		if p.Before = next; next == 0 {
			return out, nil
		}
	}
}

// peerState is the payload of a peer_state notice.
type peerState struct {
	Kind       string           `json:"kind"`
	Peer       hub.PeerID       `json:"peer_id"`
	Name       string           `json:"name"`
	State      string           `json:"state"` // held or restored
	Code       hub.Code         `json:"code,omitempty"`
	Count      int              `json:"dispatches"`
	Dispatches []hub.DispatchID `json:"dispatch_ids"` // the newest ones
}

const shownDispatches = 20

func peerNotice(p hub.Peer, ids []hub.DispatchID) notice {
	state := peerState{
		Kind: noticePeerState, Peer: p.ID, Name: p.Name, State: "held", Code: p.Condition,
		Count: len(ids), Dispatches: ids[:min(len(ids), shownDispatches)],
	}
	if p.Condition == "" {
		state.State = "restored"
		return notice{subject: p.Name + " is reached again", body: "What was held flows again; nothing was lost.", payload: state}
	}
	body := "Nothing is sent to " + p.Name + " or taken from it, and nothing is lost: what its workers report waits there. " +
		"See wavehub peer show " + p.Name + "; if it does not come back, abandon the Dispatches that are on it."
	return notice{subject: p.Name + ": " + p.Condition.Info().Title, body: body, payload: state}
}
