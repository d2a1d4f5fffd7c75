package dispatch

import (
	"encoding/json"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Quota of stale history that a home keeps of one Dispatch.
const (
	staleItems = 16
	staleBytes = 64 << 10
)

// settleReport judges a report at home and posts it: as mail when it settles,
// as stale history when it comes too late, not at all when it is a duplicate.
func settleReport(tx store.Tx, d hub.Dispatch, r hub.Report, m hub.Message) (hub.Verdict, string, int64, error) {
	c, err := concluded(tx, d, r)
	if err != nil {
		return hub.VerdictNone, "", 0, err
	}
	e := hub.Event{
		Kind: hub.EvReport, Outcome: c.Outcome, Evidence: c.Evidence, Sum: r.Sum(m.Body),
		Reason: c.Reason, ExitCode: c.ExitCode, Findings: c.kept(), Usage: hub.CleanUsage(r.Usage),
	}
	nd, changed, v, err := apply(tx, d, e, saying{m.Body, r.Result})
	if err != nil {
		return v, "", 0, err
	}
	reason := ""
	if v == hub.VerdictStale {
		reason = string(nd.State)
	}
	if changed {
		r = c.Report
		r.Reason = nd.Reason
	}
	if m.Payload, err = encode(r); err != nil {
		return v, reason, 0, err
	}
	m.Stale = v == hub.VerdictStale
	m.History = v == hub.VerdictAccepted && nd.Quiet
	if r.Evidence != hub.EvidenceReport && v == hub.VerdictAccepted {
		m.From = hubName // else it is the Dispatch's own history, under its quota
	}
	seq, err := keepReport(tx, d.ID, m, v)
	if err != nil {
		return v, reason, 0, err
	}
	if err := tx.SetVerdict(m.ID, v, reason); err != nil || !changed {
		return v, reason, seq, err
	}
	return v, reason, seq, noteScope(tx, nd, r)
}

// conclusion is a report as the Task's policies take it.
type conclusion struct{ hub.Report }

// kept is what the Dispatch keeps of the findings, nil for nothing.
func (c conclusion) kept() *hub.Findings {
	if c.VerifyResult == "" && c.ScopeCheck == "" && c.Handoff == nil {
		return nil
	}
	return &c.Findings
}

type concludeTx interface {
	store.TaskReader
	store.DispatchReader
}

// concluded judges a success by the Task's policies.
func concluded(tx concludeTx, d hub.Dispatch, r hub.Report) (conclusion, error) {
	if r.Outcome != hub.OutcomeSucceeded || d.State.Final() {
		return conclusion{r}, nil
	}
	t, err := tx.Task(d.Task)
	if err != nil {
		return conclusion{}, err
	}
	begun, err := tx.StartReceipt(d.ID)
	return conclusion{t.Conclude(r, begun.Worker != "")}, err
}

// keepReport posts a report, or, if it only repeats what is known or comes over
// the quota, keeps that it came: its id and its verdict are asked for again.
func keepReport(tx store.Tx, d hub.DispatchID, m hub.Message, v hub.Verdict) (seq int64, err error) {
	kept := v == hub.VerdictAccepted
	if v == hub.VerdictStale {
		if kept, err = keepStale(tx, d, m); err != nil {
			return 0, err
		}
	}
	known, err := tx.HasMessage(m.ID) // it was held
	switch {
	case err != nil:
		return 0, err
	case known && kept:
		return tx.Post(m)
	case known:
		return 0, nil
	case kept:
		return tx.Append(m)
	}
	m.Body, m.Payload, m.Stale = "", nil, false // it takes nothing of the quota
	return 0, tx.Record(m)
}

// keepStale reports whether the home's quota of stale history has room.
func keepStale(tx store.MailReader, d hub.DispatchID, m hub.Message) (bool, error) {
	items, bytes, err := tx.StaleKept(d)
	return items < staleItems && bytes+m.Bytes() <= staleBytes, err
}

// settleExit ends a Dispatch whose process is proven gone. To one that a report
// has settled it only says what was used in all. The end of a stop is mailed only if no call
// answered it any more.
func settleExit(tx store.Tx, d hub.Dispatch, exit hub.ExitItem) error {
	nd, changed, _, err := apply(tx, d, hub.Event{Kind: hub.EvExit, ExitCode: exit.ExitCode, Usage: hub.CleanUsage(exit.Usage)}, saying{})
	if err == nil && !changed {
		_, err = Reckon(tx, nd, exit.Usage)
	}
	if err != nil || !changed || nd.State == hub.Stopped && d.State != hub.StopUnknown {
		return err
	}
	return postEnd(tx, nd, "The worker's process "+describeExit(exit)+" without a report.")
}

func describeExit(exit hub.ExitItem) string {
	switch {
	case exit.Signal != "":
		return "was ended by " + exit.Signal
	case exit.ExitCode != nil:
		return fmt.Sprintf("exited with code %d", *exit.ExitCode)
	default:
		return "has ended (its exit code is not known)"
	}
}

// hubName is the sender of what the hub itself observed.
const hubName = "hub"

// postEnd puts the one worker_done of an end that no report and no answer told.
func postEnd(tx store.Tx, d hub.Dispatch, body string) error {
	payload, err := json.Marshal(hub.Report{
		Task: d.Task, Dispatch: d.ID, Outcome: d.Outcome, Evidence: d.Evidence, Reason: d.Reason, ExitCode: d.ExitCode,
	})
	if err != nil {
		return err
	}
	_, err = tx.Append(hub.Message{
		ID: hub.NewMessageID(), Run: d.Run, From: hubName, To: d.Run.Box(), Type: hub.TypeWorkerDone,
		Subject: string(d.State) + ": " + string(d.ID), Body: body, Payload: payload,
		History: d.Quiet, CreatedAt: tx.Now(),
	})
	return err
}
