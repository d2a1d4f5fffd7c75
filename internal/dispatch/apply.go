package dispatch

import (
	"encoding/json"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// saying is the body and the JSON result of a report, empty for what no report
// tells.
type saying struct {
	body   string
	result json.RawMessage
}

// apply is the one way in which a Dispatch changes: the table, then everything
// that follows from the new state. said is what the Task keeps of a report.
func apply(tx store.Tx, d hub.Dispatch, e hub.Event, said saying) (hub.Dispatch, bool, hub.Verdict, error) {
	e.At = tx.Now()
	nd, changed, v := hub.Apply(d, e)
	if !changed {
		return d, false, v, nil
	}
	if nd.State.Final() && nd.Usage == nil {
		usage, err := usedHere(tx, d)
		if err != nil {
			return d, false, v, err
		}
		nd.Usage = usage
	}
	ok, err := tx.SwapDispatch(d, nd)
	if err != nil {
		return d, false, v, err
	}
	if !ok {
		return d, false, v, fmt.Errorf("%s changed under its transaction", d.ID)
	}
	nd.Version = d.Version + 1
	if err := moveTask(tx, nd, said); err != nil {
		return nd, true, v, err
	}
	if nd.State.Final() || nd.State.Fenced() {
		if err := closeDown(tx, nd); err != nil {
			return nd, true, v, err
		}
	}
	return nd, true, v, nil
}

// moveTask gives the Task the state of its latest Dispatch and unlocks what
// waited for it. A superseded Dispatch moves nothing.
func moveTask(tx store.Tx, d hub.Dispatch, said saying) error {
	t, err := tx.Task(d.Task)
	if err != nil || t.Latest != d.ID || t.State == hub.TaskCompleted {
		return err
	}
	t.State = hub.TaskStateFor(d.State)
	if said.body != "" {
		t.Result, t.ResultData = said.body, said.result
	}
	t.Version++
	t.UpdatedAt = tx.Now()
	if err := tx.SaveTask(t); err != nil {
		return err
	}
	return run.Unlock(tx, t)
}

// closeDown closes pending questions, ends the capability of a local worker and
// lets its held report go, which is stale now.
func closeDown(tx store.Tx, d hub.Dispatch) error {
	closed, err := mail.CloseQuestions(tx, d.ID)
	if err != nil {
		return err
	}
	if !d.Local() {
		return tellClosed(tx, d, closed)
	}
	if err := fenceHold(tx, "", d.ID); err != nil {
		return err
	}
	a, ok, err := tx.Attachment("", d.ID)
	if err != nil || !ok {
		return err
	}
	a.Capability = hub.CapFenced
	if d.ReportSum != "" {
		a.Capability = hub.CapSettled
	}
	wakeWorker(tx, a)
	if d.State.Final() {
		return endSession(tx, a, string(d.State))
	}
	return tx.SaveAttachment(a)
}

// wakeWorker ends the worker's waits on its own mailbox and on that of the Run
// that it coordinates: it has ended.
func wakeWorker(tx store.Tx, a hub.Attachment) {
	tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(a.Dispatch.Box())})
	if a.Child != "" {
		tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(a.Child.Box())})
	}
}

func tellClosed(tx store.Tx, d hub.Dispatch, closed []hub.Question) error {
	for _, q := range closed {
		item := hub.ClosedItem{Question: q.Message, Reason: string(d.State)}
		if err := enqueue(tx, toWorker(d), hub.ItemQuestionClosed, hub.NewMessageID(), item); err != nil {
			return err
		}
	}
	return nil
}

func toWorker(d hub.Dispatch) store.QueueKey {
	return store.QueueKey{Peer: d.Server.PeerID, Dispatch: d.ID, Direction: hub.ToWorker}
}
