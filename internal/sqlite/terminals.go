package sqlite

import (
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	terminalCols = "id, role, worktree, dir, agent, name, rows, cols, home, dispatch, process, created_at, closed_at, " +
		"ended_at, exit_code, signal, created_by"
	terminalQuery = `SELECT ` + terminalCols + ` FROM terminals WHERE id = ?`
	openTerminals = `SELECT ` + terminalCols + ` FROM terminals WHERE ended_at = 0 AND rid > 0 ORDER BY rid`
	attachedTo    = `SELECT ` + attachmentCols + ` FROM attachments WHERE terminal = ? AND open = 1 ORDER BY rid`
)

var (
	insertTerminal = insertInto("terminals", terminalCols)
	updateTerminal = updateSet("terminals", terminalCols, 1)
)

func scanTerminal(s scanner, t *hub.Terminal) error {
	return s.Scan(&t.ID, &t.Role, &t.Worktree, &t.Dir, &t.Agent, &t.Name, &t.Size.Rows, &t.Size.Cols, &t.Home, &t.Dispatch,
		fromJSON{&t.Process}, &t.CreatedAt, &t.ClosedAt, &t.EndedAt, &t.ExitCode, &t.Signal, &t.CreatedBy)
}

func terminalArgs(t hub.Terminal) []any {
	return []any{t.ID, t.Role, t.Worktree, t.Dir, t.Agent, t.Name, t.Size.Rows, t.Size.Cols, t.Home, t.Dispatch,
		asJSON{t.Process}, t.CreatedAt, t.ClosedAt, t.EndedAt, t.ExitCode, t.Signal, t.CreatedBy}
}

func noTerminal(id hub.TerminalID) error {
	return hub.Errorf(hub.CodeTerminalNotFound, "there is no terminal %s", id)
}

// Terminal implements store.TerminalReader.
func (q querier) Terminal(id hub.TerminalID) (hub.Terminal, error) {
	t, err := must(q, scanTerminal, noTerminal(id), terminalQuery, id)
	return t, wrap(err, "reading %s", id)
}

// TerminalList implements store.TerminalReader.
func (q querier) TerminalList(f store.TerminalFilter, p store.Page) ([]hub.Terminal, int64, error) {
	query, args := terminalPage(f, before(p.Before))
	ts, next, err := paged(q, scanTerminal, p.Limit, query, args...)
	return ts, next, wrap(err, "listing terminals")
}

// terminalPage is the query of a filter, up to the value of LIMIT.
func terminalPage(f store.TerminalFilter, before int64) (string, []any) {
	var where strings.Builder
	var args []any
	if f.Worktree != "" {
		where.WriteString("worktree = ? AND ")
		args = append(args, f.Worktree)
	}
	if f.Live {
		where.WriteString("ended_at = 0 AND ")
	}
	return `SELECT ` + terminalCols + `, rid FROM terminals WHERE ` + where.String() + `rid < ? ORDER BY rid DESC LIMIT ?`,
		append(args, before)
}

// OpenTerminals implements store.TerminalReader, the oldest first.
func (q querier) OpenTerminals() ([]hub.Terminal, error) {
	ts, err := all(q, scanTerminal, openTerminals)
	return ts, wrap(err, "reading the open terminals")
}

// AttachedTo implements store.TerminalReader.
func (q querier) AttachedTo(id hub.TerminalID) ([]hub.Attachment, error) {
	as, err := all(q, scanAttachment, attachedTo, id)
	return as, wrap(err, "reading what is attached to %s", id)
}

// PutTerminal implements store.Terminals.
func (tx *Tx) PutTerminal(t hub.Terminal) error {
	_, err := tx.exec(insertTerminal, terminalArgs(t)...)
	return wrap(err, "putting %s", t.ID)
}

// SaveTerminal implements store.Terminals.
func (tx *Tx) SaveTerminal(t hub.Terminal) error {
	return wrap(tx.save(noTerminal(t.ID), updateTerminal, keysLast(terminalArgs(t), 1)...), "saving %s", t.ID)
}
