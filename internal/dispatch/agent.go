package dispatch

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const noticeWorkerWaiting = "worker_waiting"

// completeByResult is the completion of a launcher whose output says what its
// attempt came to.
const completeByResult = "result"

// Heard commits what an agent's own CLI said: its session, and what it waits for.
// Each time it begins to wait for a person, the Run is told once. Only the
// Dispatch's own worker may say it, and only while it has not ended. Nothing is
// written for a word that changes nothing.
func Heard(tx store.Tx, p hub.Principal, id hub.DispatchID, provider string, e hub.AgentEvent) error {
	a, err := Own(tx, p, id)
	if err != nil {
		return err
	}
	return heard(tx, a, provider, e)
}

func heard(tx store.Tx, a hub.Attachment, provider string, e hub.AgentEvent) error {
	was := a.Agent
	a.Agent = learnt(was, provider, e)
	if e.Class.Refusal() {
		if err := refusePool(tx, a.Spec.Agent, e.Class, e.ResetAt); err != nil {
			return err
		}
	}
	if a.Agent == was {
		return nil
	}
	if err := tx.SaveAttachment(a); err != nil {
		return err
	}
	if a.Capability != hub.CapActive || a.Agent.Waiting == was.Waiting || !needsPerson(a.Agent) {
		return nil
	}
	return tellWaiting(tx, a, e.Detail)
}

// learnt is what is known of an agent after an event. A later session replaces an
// earlier one: a person may have begun it anew in the same process.
func learnt(s hub.AgentState, provider string, e hub.AgentEvent) hub.AgentState {
	if e.Session != "" && e.Session != s.Session.ID {
		s.Session = hub.AgentSession{Provider: provider, ID: e.Session, Output: s.Session.Output}
	}
	if e.Transcript != "" {
		s.Session.Provider, s.Session.Transcript = provider, e.Transcript
	}
	s.Waiting = hub.WaitingFor(s.Waiting, e.Kind)
	return s
}

// needsPerson reports whether nothing goes on before a person has acted. An agent
// that runs headless ends with its turn: its end says more.
func needsPerson(s hub.AgentState) bool {
	return s.Waiting == hub.WaitsForPermission || s.Waiting == hub.WaitsForPrompt && s.Mode != hub.ModeHeadless
}

// maxDetail is how much of an agent's words a notice carries, in bytes.
const maxDetail = 2 << 10

// tellWaiting brings a worker's wait for a person home.
func tellWaiting(tx store.Tx, a hub.Attachment, detail string) error {
	item := hub.WaitingItem{WaitingFor: a.Agent.Waiting, Detail: hub.Cut(hub.PlainText([]byte(detail)), maxDetail)}
	if a.Home != "" {
		return enqueue(tx, toHome(a), hub.ItemWaiting, hub.NewMessageID(), item)
	}
	d, err := tx.Dispatch(a.Dispatch)
	if err != nil {
		return err
	}
	return noteWaiting(tx, d, item)
}

// workerWaiting is the payload of a worker_waiting notice.
type workerWaiting struct {
	Kind       string         `json:"kind"`
	Task       hub.TaskID     `json:"task_id"`
	Dispatch   hub.DispatchID `json:"dispatch_id"`
	WaitingFor string         `json:"waiting_for"`
	Detail     string         `json:"detail"` // the agent's own words
}

// noteWaiting mails a wait, unless the Dispatch has ended meanwhile.
func noteWaiting(tx store.Tx, d hub.Dispatch, item hub.WaitingItem) error {
	if !d.State.TakesMail() {
		return nil
	}
	body := "Its turn has ended and it has not reported: it waits for a prompt. "
	if item.WaitingFor == hub.WaitsForPermission {
		body = "It asks a person for permission. "
	}
	return postNotice(tx, d.Run, notice{
		subject: "waits for " + item.WaitingFor + ": " + string(d.ID),
		body:    body + "See wavehub worker show " + string(d.ID) + " and what it says with wavehub worker read " + string(d.ID) + ".",
		payload: workerWaiting{noticeWorkerWaiting, d.Task, d.ID, item.WaitingFor, item.Detail},
	})
}

func arriveWaiting(d hub.Dispatch, it hub.Item) (arrival, error) {
	var item hub.WaitingItem
	if err := json.Unmarshal(it.Payload, &item); err != nil {
		return arrival{}, refusef("malformed wait: %v", err)
	}
	if err := hub.CheckText("detail", item.Detail, hub.MaxSubjectBytes*8); err != nil || !needsPerson(hub.AgentState{Waiting: item.WaitingFor}) {
		return arrival{}, refusef("wait for %.40q refused: %v", item.WaitingFor, err)
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) { return nil, noteWaiting(tx, d, item) }}, nil
}

// refusePool closes the agent's pool after its provider has refused to work.
func refusePool(tx store.Tx, agent string, class hub.ErrorClass, resetAt hub.Micros) error {
	p, err := tx.AgentPool(agent)
	if err != nil {
		return err
	}
	if p.Until > tx.Now() && p.Class == class && resetAt <= p.Until {
		return nil // the same refusal, heard of twice
	}
	return tx.SaveAgentPool(p.Refuse(class, tx.Now(), resetAt))
}

// PoolOpen refuses a start while the agent's provider is known to refuse work.
func PoolOpen(tx store.PoolReader, agent string, now hub.Micros) error {
	p, err := tx.AgentPool(agent)
	if err != nil || p.Until <= now {
		return err
	}
	e := hub.Errorf(hub.CodeRateLimited, "the provider of %s has refused work (%s); starts are refused until %s",
		agent, p.Class, p.Until.Time().Format("2006-01-02 15:04:05Z"))
	e.AfterMS = p.Until.Sub(now).Milliseconds()
	e.Hint = "wait, or start another agent; if it works again, a test allows it"
	return e.WithNext("wavehub", "agent", "test", agent)
}

// Streamed notes which session a worker's own output says that it is.
func Streamed(tx store.Tx, home hub.PeerID, id hub.DispatchID, session string) error {
	a, ok, err := tx.Attachment(home, id)
	if err != nil || !ok || a.Agent.Session.ID == session {
		return err
	}
	a.Agent.Session.ID = session
	return tx.SaveAttachment(a)
}

// Resulted commits the terminal record of a worker's structured output: its
// usage, and the report that it stands for if the worker has not reported.
func Resulted(tx store.Tx, home hub.PeerID, id hub.DispatchID, r hub.AgentResult) error {
	a, ok, err := tx.Attachment(home, id)
	if err != nil || !ok {
		return err
	}
	a.Agent.Usage = &r.Usage
	if r.Session != "" && a.Agent.Session.ID == "" {
		a.Agent.Session.ID = r.Session
	}
	if err := tx.SaveAttachment(a); err != nil {
		return err
	}
	if err := poolAfter(tx, a.Spec.Agent, r); err != nil || a.Capability != hub.CapActive || a.Completion != completeByResult {
		return err
	}
	return reportResult(tx, a, r)
}

// poolAfter closes the pool after a refusal and forgets it after a success.
func poolAfter(tx store.Tx, agent string, r hub.AgentResult) error {
	switch {
	case r.Class.Refusal():
		return refusePool(tx, agent, r.Class, r.ResetAt)
	case r.Outcome == hub.OutcomeSucceeded:
		return tx.DropAgentPool(agent)
	}
	return nil
}

func reportResult(tx store.Tx, a hub.Attachment, res hub.AgentResult) error {
	usage, err := json.Marshal(res.Usage)
	if err != nil {
		return err
	}
	r := hub.Report{Task: a.Task, Dispatch: a.Dispatch, Outcome: res.Outcome, Evidence: hub.EvidenceResult, Usage: usage}
	if res.Class != "" && res.Class != hub.ErrorNone {
		r.Reason = string(res.Class)
	}
	m := hub.Message{
		ID: hub.NewMessageID(), Run: a.Run, From: hubName, To: a.Run.Box(), Type: hub.TypeWorkerDone,
		Subject:   "The agent's own result: " + string(res.Outcome),
		Body:      hub.Cut(hub.PlainText([]byte(res.Text)), hub.MaxBodyBytes),
		CreatedAt: tx.Now(),
	}
	_, err = commitReport(tx, a, r, m, a.LastReportAt)
	return err
}
