package dispatch

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func enqueue(tx store.Relay, k store.QueueKey, kind hub.ItemKind, id hub.MessageID, payload any) error {
	raw, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	_, err = tx.Enqueue(k, hub.Item{Dispatch: k.Dispatch, ID: id, Kind: kind, Payload: raw})
	return err
}

// enqueueMessage queues a message under the queue's quota; reserve is what the
// kind of message may use beyond it.
func enqueueMessage(tx store.Relay, k store.QueueKey, m hub.Message, reserve int64) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	q, err := tx.Queue(k)
	if err != nil {
		return err
	}
	if err := quota(q, int64(len(raw)), reserve); err != nil {
		return err
	}
	_, err = tx.Enqueue(k, hub.Item{Dispatch: k.Dispatch, ID: m.ID, Kind: hub.ItemMessage, Payload: raw})
	return err
}

func quota(q store.Queue, bytes, reserve int64) error {
	full := q.PendingItems >= hub.QueueItems || q.PendingBytes+bytes > hub.QueueBytes
	if !full {
		return nil
	}
	if reserve > 0 && bytes <= reserve && q.PendingBytes+bytes <= hub.QueueBytes+reserve {
		return nil
	}
	e := hub.Errorf(hub.CodeRelayQuotaExceeded, "%d messages (%d bytes) wait for the other hub", q.PendingItems, q.PendingBytes)
	e.Hint = "wait until the link is up; a final report is still accepted"
	e.AfterMS = 5000
	return e
}
