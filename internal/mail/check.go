package mail

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// CheckInput is the argument of a check. Limit 0 means the most allowed.
type CheckInput struct {
	Box    hub.Box           `json:"box"`
	Ack    hub.DeliveryID    `json:"ack"`
	WaitMS int64             `json:"wait_ms"`
	Limit  int               `json:"limit"`
	Types  []hub.MessageType `json:"types"`
}

// MaxWaitMS bounds every wait.
const MaxWaitMS = 600_000

// Validate refuses numbers and types that are out of range.
func (in CheckInput) Validate() error {
	switch {
	case in.WaitMS < 0 || in.WaitMS > MaxWaitMS:
		return hub.Invalid("wait_ms", "must be 0 to %d", MaxWaitMS)
	case in.Limit < 0 || in.Limit > hub.MaxBatch:
		return hub.Invalid("limit", "must be 1 to %d", hub.MaxBatch)
	case in.Ack != "" && !hub.ValidID(hub.PrefixDelivery, string(in.Ack)):
		return hub.Invalid("ack", "%q is no Delivery id", in.Ack)
	}
	return validTypes(in.Types)
}

func validTypes(types []hub.MessageType) error {
	for _, t := range types {
		if !t.Valid() {
			return hub.Invalid("types", "%q is no type of message", t)
		}
	}
	return nil
}

// Batch is the answer to a check. Messages are left out of the receipt and read
// again for a replay.
type Batch struct {
	Run            hub.RunID      `json:"run_id"`
	Delivery       hub.DeliveryID `json:"delivery_id"`
	Messages       []hub.Message  `json:"-"`
	Replayed       bool           `json:"replayed"`
	WaitingBehind  int64          `json:"waiting_behind"`
	Acknowledged   hub.DeliveryID `json:"acknowledged"`
	TimedOut       bool           `json:"timed_out"`
	Cancelled      bool           `json:"cancelled"`
	ConnectionLost bool           `json:"connection_lost"`
	Mutation       hub.Mutation   `json:"mutation"`

	generation int64
}

// Mut returns the mutation, for the receipt gate.
func (b *Batch) Mut() *hub.Mutation { return &b.Mutation }

// Subject is the Delivery.
func (b *Batch) Subject() (hub.RunID, string) { return b.Run, string(b.Delivery) }

// ack consumes the batch and returns it, nil if it was consumed before; gen is
// the caller's generation.
func ack(tx store.Mail, box hub.Box, gen int64, id hub.DeliveryID) (*hub.Delivery, error) {
	d, ok, err := tx.Delivery(id)
	switch {
	case err != nil:
		return nil, err
	case !ok || d.Box != box:
		return nil, hub.Errorf(hub.CodeStaleDelivery, "%s is no Delivery of %s", id, box)
	case d.State == hub.FencedBatch || d.Generation != gen:
		return nil, hub.Errorf(hub.CodeStaleDelivery, "%s went to a former consumer; check again for the present batch", id)
	case d.State == hub.Acknowledged:
		return nil, nil
	}
	d.State = hub.Acknowledged
	if err := tx.SaveDelivery(d); err != nil {
		return nil, err
	}
	mb, err := tx.Mailbox(box)
	if err != nil {
		return nil, err
	}
	mb.AckedSeq, mb.Done, mb.Outstanding = d.LastSeq, mb.Done+int64(d.Count), ""
	return &d, tx.SaveMailbox(mb)
}

type lookTx interface {
	store.Mail
	Now() hub.Micros
}

// look returns the outstanding batch, or forms one. Without mail, or when wake
// is set and no message of its types waits, it returns a Batch without a
// Delivery and changes nothing.
func look(tx lookTx, gen int64, in CheckInput, wake bool) (Batch, error) {
	mb, err := tx.Mailbox(in.Box)
	if err != nil {
		return Batch{}, err
	}
	if mb.Outstanding != "" {
		return outstanding(tx, mb)
	}
	if wake && len(in.Types) > 0 {
		ok, err := tx.Wakes(in.Box, mb.AckedSeq, in.Types)
		if err != nil || !ok {
			return Batch{}, err
		}
	}
	return form(tx, mb, gen, in.Limit)
}

func outstanding(tx store.MailReader, mb store.Mailbox) (Batch, error) {
	d, _, err := tx.Delivery(mb.Outstanding)
	if err != nil {
		return Batch{}, err
	}
	ms, err := tx.Between(d.Box, d.FirstSeq, d.LastSeq)
	behind := mb.Live - mb.Done - int64(d.Count)
	return Batch{Delivery: d.ID, Messages: ms, Replayed: true, WaitingBehind: behind}, err
}

func form(tx lookTx, mb store.Mailbox, gen int64, limit int) (Batch, error) {
	if limit == 0 {
		limit = hub.MaxBatch
	}
	ms, err := tx.Deliverable(mb.Box, mb.AckedSeq, limit, hub.MaxBatchBytes)
	if err != nil || len(ms) == 0 {
		return Batch{}, err
	}
	d := hub.Delivery{
		ID: hub.NewDeliveryID(), Box: mb.Box, Generation: gen, Count: len(ms), State: hub.Outstanding,
		FirstSeq: ms[0].Seq, LastSeq: ms[len(ms)-1].Seq, At: tx.Now(),
	}
	if err := tx.PutDelivery(d); err != nil {
		return Batch{}, err
	}
	mb.Outstanding, mb.HandedSeq = d.ID, max(mb.HandedSeq, d.LastSeq)
	b := Batch{Delivery: d.ID, Messages: ms, WaitingBehind: mb.Live - mb.Done - int64(d.Count)}
	return b, tx.SaveMailbox(mb)
}
