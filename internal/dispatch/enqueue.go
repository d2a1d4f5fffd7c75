package dispatch

import (
	"bytes"
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

// enqueueMessage queues a message under the queue's quota, which counts it as it
// was accepted and not as JSON escapes it; reserve is what the kind of message
// may use beyond it.
func enqueueMessage(tx store.Relay, k store.QueueKey, m hub.Message, reserve int64) error {
	q, err := tx.Queue(k)
	if err != nil {
		return err
	}
	if err := quota(q, int64(m.Bytes()), reserve); err != nil {
		return err
	}
	return enqueueTaken(tx, k, m)
}

// enqueueTaken queues a message that was accepted before.
func enqueueTaken(tx store.Relay, k store.QueueKey, m hub.Message) error {
	raw, err := encode(m)
	if err != nil {
		return err
	}
	_, err = tx.Enqueue(k, hub.Item{Dispatch: k.Dispatch, ID: m.ID, Kind: hub.ItemMessage, Payload: raw})
	return err
}

// encode writes JSON as it was given: escaped for HTML, as json.Marshal does it, a
// message within the limits would be over them, and fit no frame.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

func quota(q store.Queue, size, reserve int64) error {
	full := q.PendingItems >= hub.QueueItems || q.PendingBytes+size > hub.QueueBytes
	if !full || reserve > 0 && size <= reserve {
		return nil // the reserve is for one report, however far JSON has filled the queue
	}
	e := hub.Errorf(hub.CodeRelayQuotaExceeded, "%d messages (%d bytes) wait for the other hub", q.PendingItems, q.PendingBytes)
	e.Hint = "wait until the link is up; a final report is still accepted"
	e.AfterMS = 5000
	return e
}
