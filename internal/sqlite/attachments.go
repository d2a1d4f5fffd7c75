package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	attachmentCols = "home, dispatch, task, run, request, spec, receipt, capability, terminal, worktree, dir, " +
		"process, completion, exit_done, fence, fenced, tombstone, last_report_at, report_sum, late, late_bytes, checks, agent, depth, child, sponsor, " +
		"worker, session, start_mail, taken_up"
	attachmentQuery = `SELECT ` + attachmentCols + ` FROM attachments WHERE home = ? AND dispatch = ?`
	openAttachments = `SELECT ` + attachmentCols + ` FROM attachments WHERE open = 1 ORDER BY rid`
	attachmentsOf   = `SELECT ` + attachmentCols + `, rid FROM attachments WHERE home = ? AND home <> '' AND rid < ? ORDER BY rid DESC LIMIT ?`
)

var (
	insertAttachment = insertInto("attachments", attachmentCols+", open")
	updateAttachment = updateSet("attachments", attachmentCols+", open", 2)
)

func scanAttachment(s scanner, a *hub.Attachment) error {
	return s.Scan(&a.Home, &a.Dispatch, &a.Task, &a.Run, &a.Request, fromJSON{&a.Spec},
		fromJSON{&a.Receipt}, &a.Capability, &a.Terminal, &a.Worktree, &a.Dir, fromJSON{&a.Process}, &a.Completion,
		&a.ExitDone, fromJSON{&a.Fence}, &a.Fenced, &a.Tombstone, &a.LastReportAt, &a.ReportSum, &a.Late, &a.LateBytes, fromJSON{&a.Checks}, fromJSON{&a.Agent},
		&a.Depth, &a.Child, &a.Sponsor, &a.Worker, &a.Session, &a.StartMail, &a.TakenUp)
}

func attachmentArgs(a hub.Attachment) []any {
	return []any{a.Home, a.Dispatch, a.Task, a.Run, a.Request, asJSON{a.Spec},
		asJSON{a.Receipt}, a.Capability, a.Terminal, a.Worktree, a.Dir, asJSON{a.Process}, a.Completion,
		a.ExitDone, asJSON{a.Fence}, a.Fenced, a.Tombstone, a.LastReportAt, a.ReportSum, a.Late, a.LateBytes, asJSON{a.Checks}, asJSON{a.Agent},
		a.Depth, a.Child, a.Sponsor, a.Worker, a.Session, a.StartMail, a.TakenUp, isOpen(a)}
}

// isOpen reports whether somebody still has to look after a: its process may
// run, its start is under way, or its fence is not carried out. A tombstone
// and a start that failed before a process have nothing to end.
func isOpen(a hub.Attachment) bool {
	never := a.Process == nil && (a.Tombstone || a.Receipt.State == hub.StartFailed)
	return !a.ExitDone && !never || a.Fence != nil && !a.Fenced
}

// Attachment implements store.AttachmentReader.
func (q querier) Attachment(home hub.PeerID, d hub.DispatchID) (hub.Attachment, bool, error) {
	a, ok, err := one(q, scanAttachment, attachmentQuery, home, d)
	return a, ok, wrap(err, "reading the attachment of %s", d)
}

// OpenAttachments implements store.AttachmentReader, the oldest first.
func (q querier) OpenAttachments() ([]hub.Attachment, error) {
	as, err := all(q, scanAttachment, openAttachments)
	return as, wrap(err, "reading the open attachments")
}

// AttachmentsOf implements store.AttachmentReader.
func (q querier) AttachmentsOf(home hub.PeerID, p store.Page) ([]hub.Attachment, int64, error) {
	as, next, err := paged(q, scanAttachment, p.Limit, attachmentsOf, home, before(p.Before))
	return as, next, wrap(err, "reading what %s has here", home)
}

// PutAttachment implements store.Attachments.
func (tx *Tx) PutAttachment(a hub.Attachment) error {
	tx.signalAttachment(a.Home, a.Dispatch)
	_, err := tx.exec(insertAttachment, attachmentArgs(a)...)
	return wrap(err, "putting the attachment of %s", a.Dispatch)
}

// SaveAttachment implements store.Attachments.
func (tx *Tx) SaveAttachment(a hub.Attachment) error {
	tx.signalAttachment(a.Home, a.Dispatch)
	return wrap(tx.save(noDispatch(a.Dispatch), updateAttachment, keysLast(attachmentArgs(a), 2)...), "saving the attachment of %s", a.Dispatch)
}

func (tx *Tx) signalAttachment(home hub.PeerID, d hub.DispatchID) {
	tx.Signal(hub.Signal{Topic: hub.TopicAttachment, Key: hub.AttachmentKey(home, d)})
}
