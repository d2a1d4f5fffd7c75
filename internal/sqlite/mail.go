package sqlite

import (
	"fmt"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	messageCols = "id, mailbox, seq, run, sender, recipient, type, subject, body, payload, " +
		"thread, reply_to, live, created_at, verdict, reason"
	messageSelect = `SELECT id, COALESCE(seq, 0), run, sender, recipient, type, subject, body, payload, ` +
		`thread, reply_to, live, created_at FROM messages WHERE `

	messageQuery    = messageSelect + `id = ?`
	hasMessageQuery = `SELECT COUNT(*) FROM messages WHERE id = ?`
	inBox           = `mailbox = (SELECT rid FROM mailboxes WHERE box = ?)`
	deliverable     = messageSelect + inBox + ` AND live = 1 AND seq > ? ORDER BY seq LIMIT ?`
	betweenQuery    = messageSelect + inBox + ` AND live = 1 AND seq >= ? AND seq <= ? ORDER BY seq`
	wakesQuery      = `SELECT 1 FROM messages WHERE ` + inBox + ` AND live = 1 AND seq > ?`
	verdictQuery    = `SELECT verdict, reason FROM messages WHERE id = ?`
	postMessage     = `UPDATE messages SET mailbox = ?, seq = ?, sender = ?, payload = ?, live = ? WHERE id = ? AND mailbox IS NULL`
	withdrawMessage = `UPDATE messages SET live = ? WHERE id = ? AND mailbox = ?`
	setVerdict      = `UPDATE messages SET verdict = ?, reason = ? WHERE id = ?`
	staleQuery      = `SELECT COUNT(*), COALESCE(SUM(LENGTH(CAST(subject AS BLOB)) + LENGTH(CAST(body AS BLOB)) +
		COALESCE(LENGTH(payload), 0)), 0) FROM messages WHERE sender = ? AND live = 0`
)

var insertMessage = insertInto("messages", messageCols)

// Values of messages.live.
const (
	rowStale   = 0 // came too late; counts against the quota of its sender
	rowLive    = 1 // a check may deliver it
	rowHistory = 2 // kept as history on purpose
)

func liveOf(m hub.Message) int {
	switch {
	case m.Stale:
		return rowStale
	case m.History:
		return rowHistory
	}
	return rowLive
}

func scanMessage(s scanner, m *hub.Message) error {
	var live int
	err := s.Scan(&m.ID, &m.Seq, &m.Run, &m.From, &m.To, &m.Type, &m.Subject, &m.Body, (*[]byte)(&m.Payload),
		&m.Thread, &m.ReplyTo, &live, &m.CreatedAt)
	m.Stale, m.History = live == rowStale, live == rowHistory
	return err
}

func noMessage(id hub.MessageID) error {
	return hub.Errorf(hub.CodeMessageNotFound, "there is no message %s", id)
}

// Message implements store.MailReader.
func (q querier) Message(id hub.MessageID) (hub.Message, error) {
	m, err := must(q, scanMessage, noMessage(id), messageQuery, id)
	return m, wrap(err, "reading %s", id)
}

// HasMessage implements store.MailReader.
func (q querier) HasMessage(id hub.MessageID) (bool, error) {
	n, _, err := one(q, scanInt, hasMessageQuery, id)
	return n > 0, wrap(err, "looking for %s", id)
}

// Deliverable implements store.MailReader.
func (q querier) Deliverable(box hub.Box, after int64, limit, maxBytes int) ([]hub.Message, error) {
	ms, err := fitting(q, scanMessage, hub.Message.Bytes, maxBytes, deliverable, box, after, max(limit, 1))
	return ms, wrap(err, "reading mail of %s", box)
}

// Between implements store.MailReader.
func (q querier) Between(box hub.Box, first, last int64) ([]hub.Message, error) {
	ms, err := all(q, scanMessage, betweenQuery, box, first, last)
	return ms, wrap(err, "reading mail of %s", box)
}

// Wakes implements store.MailReader.
func (q querier) Wakes(box hub.Box, after int64, types []hub.MessageType) (bool, error) {
	cond, args := ofTypes(types)
	_, ok, err := one(q, scanInt, wakesQuery+cond+` LIMIT 1`, append([]any{box, after}, args...)...)
	return ok, wrap(err, "looking for mail of %s", box)
}

// History implements store.MailReader.
func (q querier) History(box hub.Box, f store.HistoryFilter) (ms []hub.Message, next int64, err error) {
	if err := checkLimit(f.Limit); err != nil {
		return nil, 0, err
	}
	if f.Unread {
		m, ok, err := one(q, scanMailbox, mailboxQuery, box)
		if err != nil || !ok {
			return nil, 0, wrap(err, "reading mailbox %s", box)
		}
		f.After = max(f.After, m.AckedSeq)
	}
	query, args := historyQuery(box, f)
	ms, more, err := within(q, scanMessage, hub.Message.Bytes, f.Limit, pageBytes, query, args...)
	if more {
		next = ms[len(ms)-1].Seq
	}
	return ms, next, wrap(err, "reading the history of %s", box)
}

func historyQuery(box hub.Box, f store.HistoryFilter) (string, []any) {
	query := messageSelect + inBox + ` AND seq > ?`
	if f.Unread {
		query += ` AND live = 1`
	}
	cond, args := ofTypes(f.Types)
	return query + cond + ` ORDER BY seq LIMIT ?`, append(append([]any{box, f.After}, args...), f.Limit+1)
}

func ofTypes(types []hub.MessageType) (string, []any) {
	if len(types) == 0 {
		return "", nil
	}
	args := make([]any, len(types))
	for i, t := range types {
		args[i] = t
	}
	return ` AND type IN (?` + strings.Repeat(", ?", len(types)-1) + `)`, args
}

// VerdictOf implements store.MailReader.
func (q querier) VerdictOf(id hub.MessageID) (v hub.Verdict, reason string, err error) {
	_, _, err = one(q, func(s scanner, _ *struct{}) error { return s.Scan(&v, &reason) }, verdictQuery, id)
	return v, reason, wrap(err, "reading the verdict on %s", id)
}

// StaleKept implements store.MailReader: late mail sent by the Dispatch.
func (q querier) StaleKept(id hub.DispatchID) (items, bytes int, err error) {
	_, _, err = one(q, func(s scanner, _ *struct{}) error { return s.Scan(&items, &bytes) }, staleQuery, id.Box())
	return items, bytes, wrap(err, "counting the history of %s", id)
}

// Append implements store.Mail.
func (tx *Tx) Append(m hub.Message) (seq int64, err error) { return tx.AppendTo(m.To, m) }

// AppendTo implements store.Mail.
func (tx *Tx) AppendTo(box hub.Box, m hub.Message) (seq int64, err error) {
	var mailbox int64
	ok, err := tx.returning([]any{&mailbox, &seq}, bumpMailbox, m.Live(), box)
	switch {
	case err != nil:
		return 0, wrap(err, "appending to %s", box)
	case !ok:
		return 0, noMailbox(box)
	}
	if err := tx.insertMessage(m, mailbox, seq); err != nil {
		return 0, wrap(err, "appending %s to %s", m.ID, box)
	}
	tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(box)})
	return seq, nil
}

// Post implements store.Mail.
func (tx *Tx) Post(m hub.Message) (seq int64, err error) {
	var mailbox int64
	ok, err := tx.returning([]any{&mailbox, &seq}, bumpMailbox, m.Live(), m.To)
	switch {
	case err != nil:
		return 0, wrap(err, "posting to %s", m.To)
	case !ok:
		return 0, noMailbox(m.To)
	}
	if err := tx.save(noMessage(m.ID), postMessage, mailbox, seq, m.From, blob(m.Payload), liveOf(m), m.ID); err != nil {
		return 0, wrap(err, "posting %s to %s", m.ID, m.To)
	}
	tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(m.To)})
	return seq, nil
}

// Withdraw implements store.Mail.
func (tx *Tx) Withdraw(box hub.Box, id hub.MessageID) error {
	m, err := tx.Message(id)
	if err != nil {
		return err
	}
	if !m.Live() {
		return nil
	}
	var mailbox, last int64
	ok, err := tx.returning([]any{&mailbox, &last}, thinMailbox, box, m.Seq)
	if err == nil && !ok {
		err = fmt.Errorf("a Delivery of %s has held it", box)
	}
	if err == nil {
		err = tx.save(noMessage(id), withdrawMessage, rowHistory, id, mailbox)
	}
	return wrap(err, "withdrawing %s", id)
}

// Record implements store.Mail.
func (tx *Tx) Record(m hub.Message) error {
	return wrap(tx.insertMessage(m, nil, nil), "recording %s", m.ID)
}

func (tx *Tx) insertMessage(m hub.Message, mailbox, seq any) error {
	_, err := tx.exec(insertMessage, m.ID, mailbox, seq, m.Run, m.From, m.To, m.Type, m.Subject, m.Body,
		blob(m.Payload), m.Thread, m.ReplyTo, liveOf(m), m.CreatedAt, hub.VerdictNone, "")
	return err
}

// SetVerdict implements store.Mail.
func (tx *Tx) SetVerdict(id hub.MessageID, v hub.Verdict, reason string) error {
	return wrap(tx.save(noMessage(id), setVerdict, v, reason, id), "noting the verdict on %s", id)
}
