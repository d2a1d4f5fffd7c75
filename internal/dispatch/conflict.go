package dispatch

import (
	"crypto/sha256"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func markOf(it hub.Item) store.Mark {
	return store.Mark{ID: it.ID, Sum: sha256.Sum256(append([]byte(it.Kind+"\x00"), it.Payload...))}
}

// same reports whether an item at or below the cursor is the one that was
// imported: a message that is kept here and is the Dispatch's, else what the mark
// of its sequence says.
func (im *importer) same(it hub.Item, l *lane) (bool, error) {
	if it.Seq <= l.cur.Known {
		return true, nil
	}
	if it.Kind == hub.ItemMessage {
		if m, err := im.tx.Message(it.ID); err == nil {
			return im.belongs(it.Dispatch, m)
		} else if !hub.IsCode(err, hub.CodeMessageNotFound) {
			return false, err
		}
	}
	m, ok, err := im.tx.Mark(l.key, it.Seq)
	return ok && m == markOf(it), err
}

// belongs reports whether a message is to or from the Dispatch, or the hub's own
// word on it.
func (im *importer) belongs(d hub.DispatchID, m hub.Message) (bool, error) {
	if box := d.Box(); m.To == box || m.From == string(box) {
		return true, nil
	}
	if m.From != hubName {
		return false, nil
	}
	known, err := im.tx.Dispatch(d)
	if hub.IsCode(err, hub.CodeDispatchNotFound) {
		return false, nil
	}
	return err == nil && known.Run == m.Run, err
}

// conflict parks a queue whose source gives its sequences a second meaning.
// Nothing of it is acknowledged: what it says now would be lost.
func (im *importer) conflict(it hub.Item, l *lane) error {
	reason := fmt.Sprintf("%s: item %d is not the one that was imported", hub.ParkedConflict, it.Seq)
	l.ack = hub.Ack{Dispatch: it.Dispatch, Parked: reason}
	l.cur.Parked = reason
	return im.tellHome(regression{Dispatch: it.Dispatch, Had: l.cur.Seq, Has: it.Seq - 1, Conflict: true})
}

func (im *importer) tellHome(r regression) error {
	if im.dir != hub.ToHome {
		return nil
	}
	return tellRegressed(im.tx, im.peer, []regression{r})
}

// parked notes why the receiver does not take a queue of this hub. That it does
// so because this hub has lost what it had sent is told to the Run, if the Run is
// here.
func parked(tx store.Tx, k store.QueueKey, ack hub.Ack) error {
	before, err := tx.Queue(k)
	if err != nil {
		return err
	}
	if err := tx.ParkQueue(k, ack.Parked); err != nil {
		return err
	}
	was := hub.Ack{Parked: before.Parked}
	if k.Direction != hub.ToWorker || !ack.Conflicting() || was.Conflicting() {
		return nil
	}
	p, err := tx.Peer(k.Peer)
	if err != nil {
		return err
	}
	return tellRegressed(tx, p, []regression{{Dispatch: k.Dispatch, Has: before.LastSeq, Conflict: true, Here: true}})
}
