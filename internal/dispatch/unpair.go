package dispatch

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Unpaired is what else happens in the transaction that removes a peer: the
// waits of its workers here end, and each Run that has a live Dispatch there is
// told. Attachments, queues and processes stay.
func Unpaired(tx store.Tx, p hub.Peer) error {
	open, err := tx.OpenAttachments()
	if err != nil {
		return err
	}
	for _, a := range open {
		if a.Home != p.ID {
			continue
		}
		wakeWorker(tx, a)
		tx.Signal(hub.Signal{Topic: hub.TopicWorker, Key: waitsAs(a)})
	}
	live, err := liveThere(tx, p.ID)
	if err != nil {
		return err
	}
	for _, r := range live.runs {
		if err := postNotice(tx, r, removedNotice(p, live.of[r])); err != nil {
			return err
		}
	}
	return nil
}

// waitsAs is as whom an attachment's worker waits for answers and verdicts.
func waitsAs(a hub.Attachment) string {
	if a.Attached() {
		return string(a.Worker)
	}
	return string(a.Dispatch)
}

func removedNotice(p hub.Peer, ids []hub.DispatchID) notice {
	return notice{
		subject: p.Name + ": the pairing has ended",
		body: "Nothing is sent to " + p.Name + " or taken from it any more. Its workers may still run; what they report is " +
			"not heard unless the two hubs are paired again, with the same stores. Abandon the Dispatches that are on it.",
		payload: peerState{
			Kind: noticePeerState, Peer: p.ID, Name: p.Name, State: "removed", Code: hub.CodePeerRevoked,
			Count: len(ids), Dispatches: ids[:min(len(ids), shownDispatches)],
		},
	}
}

type holdsRx interface {
	store.DispatchReader
	store.AttachmentReader
	Peer(hub.PeerID) (hub.Peer, error)
}

// Holds is what is left between this hub and a peer.
func Holds(rx holdsRx, id hub.PeerID) (hub.PeerHolds, error) {
	out := hub.PeerHolds{Stranded: []hub.Stranded{}}
	p, err := rx.Peer(id)
	if err != nil {
		return out, err
	}
	live, err := liveThere(rx, id)
	if err != nil {
		return out, err
	}
	for _, ids := range live.of {
		out.Dispatches += len(ids)
	}
	open, err := rx.OpenAttachments()
	for _, a := range open {
		if a.Home != id || a.ExitDone {
			continue
		}
		out.Workers++
		if !p.State.Trusted() && len(out.Stranded) < hub.MaxStranded {
			out.Stranded = append(out.Stranded, hub.Stranded{Home: id, Dispatch: a.Dispatch, Task: a.Task, Dir: a.Dir, Terminal: a.Terminal})
		}
	}
	return out, err
}
