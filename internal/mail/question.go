package mail

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// QuestionSum identifies a question by its text and options.
func QuestionSum(text string, options []string) (string, error) {
	raw, err := json.Marshal([]any{text, options})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Pending returns the Dispatch's pending question with the sum, if there is one.
func Pending(tx store.QuestionReader, d hub.DispatchID, sum string) (hub.Question, bool, error) {
	qs, err := tx.PendingQuestions(d)
	if err != nil {
		return hub.Question{}, false, err
	}
	for _, q := range qs {
		if q.Sum == sum {
			return q, true, nil
		}
	}
	return hub.Question{}, false, nil
}

// AskedQuestion is a question with what was asked, and when.
type AskedQuestion struct {
	hub.Question
	Text    string
	Options []string
	At      hub.Micros
}

type askedRx interface {
	store.QuestionReader
	Message(hub.MessageID) (hub.Message, error)
}

// Asked is one page of questions, newest first. The text of one that came too
// late and was over the quota of history is not known.
func Asked(rx askedRx, f store.QuestionFilter, p store.Page) ([]AskedQuestion, int64, error) {
	qs, next, err := rx.QuestionList(f, p)
	out := make([]AskedQuestion, 0, len(qs))
	for _, q := range qs {
		m, merr := rx.Message(q.Message)
		if merr != nil && !hub.IsCode(merr, hub.CodeMessageNotFound) {
			return nil, 0, merr
		}
		out = append(out, AskedQuestion{Question: q, Text: m.Body, Options: optionsOf(m), At: m.CreatedAt})
	}
	return out, next, err
}

// optionsOf reads a question's options; a payload of another shape has none.
func optionsOf(m hub.Message) []string {
	var payload struct {
		Options []string `json:"options"`
	}
	if json.Unmarshal(m.Payload, &payload) != nil {
		return nil
	}
	return payload.Options
}

type answerTx interface {
	store.Questions
	Signal(hub.Signal)
}

// Answer records the first answer and wakes the asker. The same answer again
// changes nothing and returns false; another one is answer_conflict.
func Answer(tx answerTx, q hub.Question, body string, id hub.MessageID) (changed bool, err error) {
	switch {
	case q.State == hub.QuestionClosed:
		return false, hub.Errorf(hub.CodeDispatchInactive, "the question was closed when %s ended", q.Dispatch)
	case q.State == hub.QuestionAnswered && q.Answer == body:
		return false, nil
	case q.State == hub.QuestionAnswered:
		return false, hub.Errorf(hub.CodeAnswerConflict, "%s has another answer already (%s)", q.Message, q.AnswerID)
	}
	q.State, q.Answer, q.AnswerID = hub.QuestionAnswered, body, id
	tx.Signal(hub.Signal{Topic: hub.TopicQuestion, Key: string(q.Message)})
	return true, tx.SaveQuestion(q)
}

// CloseQuestions closes the Dispatch's pending questions, wakes their waiters
// and returns what it closed.
func CloseQuestions(tx answerTx, d hub.DispatchID) ([]hub.Question, error) {
	qs, err := tx.PendingQuestions(d)
	if err != nil {
		return nil, err
	}
	for i := range qs {
		if err := CloseQuestion(tx, qs[i]); err != nil {
			return nil, err
		}
	}
	return qs, nil
}

// CloseQuestion closes one pending question.
func CloseQuestion(tx answerTx, q hub.Question) error {
	q.State = hub.QuestionClosed
	tx.Signal(hub.Signal{Topic: hub.TopicQuestion, Key: string(q.Message)})
	return tx.SaveQuestion(q)
}

// AnswerResult is what a wait for an answer returns.
type AnswerResult struct {
	Question hub.Question
	TimedOut bool
}

// Await waits until the question is answered or closed, or until the wait ends.
// Only the Dispatch that asked may wait.
func (s *Service) Await(ctx context.Context, p hub.Principal, id hub.MessageID, wait time.Duration) (AnswerResult, error) {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicQuestion), string(id))
	defer cancel()
	var q hub.Question
	timedOut, err := s.await(ctx, p, woken, wait, func(rx store.Rx) (done bool, err error) {
		if q, err = rx.Question(id); err != nil {
			return false, err
		}
		return q.State != hub.QuestionPending, mayResume(rx, p, q.Dispatch)
	})
	if err == nil && q.State == hub.QuestionClosed {
		err = hub.Errorf(hub.CodeDispatchInactive, "the question was closed when %s ended", q.Dispatch)
	}
	return AnswerResult{Question: q, TimedOut: timedOut}, err
}

// mayResume lets the Dispatch's own worker wait for what comes back to it.
func mayResume(rx store.Rx, p hub.Principal, id hub.DispatchID) error {
	own := p.Kind == hub.DispatchCap && p.ID == string(id)
	if p.Kind == hub.AttachedWorker {
		a, ok, err := rx.WorkerAttachment(hub.WorkerID(p.ID), id)
		if err == nil && ok {
			err = receipt.Paired(rx, a.Home)
		}
		if own = ok; err != nil {
			return err
		}
	}
	if !own {
		return hub.Errorf(hub.CodeOutOfScope, "only the Dispatch that asked or reported may wait for what comes back")
	}
	return nil
}

// VerdictResult is what a wait for a verdict returns.
type VerdictResult struct {
	Verdict  hub.Verdict
	Reason   string
	TimedOut bool
}

// AwaitVerdict waits for the home's verdict on a report that p sent.
func (s *Service) AwaitVerdict(ctx context.Context, p hub.Principal, id hub.MessageID, wait time.Duration) (VerdictResult, error) {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicVerdict), string(id))
	defer cancel()
	var out VerdictResult
	timedOut, err := s.await(ctx, p, woken, wait, func(rx store.Rx) (done bool, err error) {
		m, err := rx.Message(id)
		if err != nil {
			return false, err
		}
		from, _ := hub.Box(m.From).Dispatch()
		if err := mayResume(rx, p, from); err != nil {
			return false, err
		}
		out.Verdict, out.Reason, err = rx.VerdictOf(id)
		return out.Verdict != hub.VerdictNone, err
	})
	out.TimedOut = timedOut
	return out, err
}

// await looks, then waits for a wake-up and looks again. It ends for a caller
// whose credential is revoked, or whose home is.
func (s *Service) await(ctx context.Context, p hub.Principal, woken <-chan struct{}, wait time.Duration, look func(store.Rx) (bool, error)) (timedOut bool, err error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	revoked, cancel := s.Bus.Subscribe(string(hub.TopicWorker), p.ID)
	defer cancel()
	for {
		var done bool
		err := s.Store.View(ctx, func(rx store.Rx) (err error) {
			if err = receipt.Authorize(rx, p); err == nil {
				done, err = look(rx)
			}
			return err
		})
		if err != nil || done {
			return false, err
		}
		select {
		case <-woken:
		case <-revoked:
		case <-deadline.C:
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-s.Draining:
			return false, hub.Errorf(hub.CodeHubDraining, "the hub is stopping; what is waited for stays as it is")
		}
	}
}
