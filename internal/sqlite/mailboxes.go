package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	mailboxCols  = "box, seq, live, done, acked_seq, outstanding, handed_seq"
	mailboxQuery = `SELECT ` + mailboxCols + ` FROM mailboxes WHERE box = ?`
	bumpMailbox  = `UPDATE mailboxes SET seq = seq + 1, live = live + ? WHERE box = ? RETURNING rid, seq`
	thinMailbox  = `UPDATE mailboxes SET live = live - 1 WHERE box = ? AND handed_seq < ? RETURNING rid, seq`

	deliveryCols  = "id, box, generation, first_seq, last_seq, count, state, at"
	deliveryQuery = `SELECT ` + deliveryCols + ` FROM deliveries WHERE id = ?`
)

var (
	insertMailbox  = insertInto("mailboxes", mailboxCols)
	updateMailbox  = updateSet("mailboxes", mailboxCols, 1)
	insertDelivery = insertInto("deliveries", deliveryCols)
	updateDelivery = updateSet("deliveries", deliveryCols, 1)
)

func scanMailbox(s scanner, m *store.Mailbox) error {
	return s.Scan(&m.Box, &m.Seq, &m.Live, &m.Done, &m.AckedSeq, &m.Outstanding, &m.HandedSeq)
}

func mailboxArgs(m store.Mailbox) []any {
	return []any{m.Box, m.Seq, m.Live, m.Done, m.AckedSeq, m.Outstanding, m.HandedSeq}
}

func noMailbox(b hub.Box) error {
	return hub.Errorf(hub.CodeMailboxNotFound, "there is no mailbox %s", b)
}

// Mailbox implements store.MailReader.
func (q querier) Mailbox(b hub.Box) (store.Mailbox, error) {
	m, err := must(q, scanMailbox, noMailbox(b), mailboxQuery, b)
	return m, wrap(err, "reading mailbox %s", b)
}

// PutMailbox implements store.Mail.
func (tx *Tx) PutMailbox(m store.Mailbox) error {
	_, err := tx.exec(insertMailbox, mailboxArgs(m)...)
	return wrap(err, "putting mailbox %s", m.Box)
}

// SaveMailbox implements store.Mail.
func (tx *Tx) SaveMailbox(m store.Mailbox) error {
	return wrap(tx.save(noMailbox(m.Box), updateMailbox, keysLast(mailboxArgs(m), 1)...), "saving mailbox %s", m.Box)
}

func scanDelivery(s scanner, d *hub.Delivery) error {
	return s.Scan(&d.ID, &d.Box, &d.Generation, &d.FirstSeq, &d.LastSeq, &d.Count, &d.State, &d.At)
}

func deliveryArgs(d hub.Delivery) []any {
	return []any{d.ID, d.Box, d.Generation, d.FirstSeq, d.LastSeq, d.Count, d.State, d.At}
}

// Delivery implements store.MailReader.
func (q querier) Delivery(id hub.DeliveryID) (hub.Delivery, bool, error) {
	d, ok, err := one(q, scanDelivery, deliveryQuery, id)
	return d, ok, wrap(err, "reading %s", id)
}

// PutDelivery implements store.Mail.
func (tx *Tx) PutDelivery(d hub.Delivery) error {
	_, err := tx.exec(insertDelivery, deliveryArgs(d)...)
	return wrap(err, "putting %s", d.ID)
}

// SaveDelivery implements store.Mail.
func (tx *Tx) SaveDelivery(d hub.Delivery) error {
	missing := hub.Errorf(hub.CodeNotFound, "there is no Delivery %s", d.ID)
	return wrap(tx.save(missing, updateDelivery, keysLast(deliveryArgs(d), 1)...), "saving %s", d.ID)
}
