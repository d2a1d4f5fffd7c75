package server

import (
	"encoding/json"
	"fmt"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// requestDetail shows a receipt; the recorded answer goes through the mapping
// of its operation, so that it reads as the first answer did.
func (s *Server) requestDetail(rx store.Rx, rec store.Receipt) (api.RequestDetail, error) {
	var out api.RequestDetail
	q := &out.Request
	q.RequestId, q.Operation, q.State = string(rec.Key), rec.Op, api.RequestDetailRequestState(rec.State)
	q.Stage, q.CreatedAt, out.Response = null(rec.Stage), at(rec.CreatedAt), json.RawMessage("null")
	q.Object, q.BodyExpired = null(rec.Object), receipt.BodyExpired(rec, rx.Now())
	if q.BodyExpired || len(rec.Body) == 0 {
		return out, nil
	}
	shown, err := s.recordedAnswer(rx, rec)
	if err != nil {
		return out, fmt.Errorf("reading the receipt of %s: %w", rec.Key, err)
	}
	if start, ok := shown.(api.StartReceipt); ok && q.Stage == nil {
		q.Stage = &start.Stage
	}
	out.Response, err = encode(shown)
	return out, err
}

func (s *Server) recordedAnswer(rx store.Rx, rec store.Receipt) (any, error) {
	switch rec.Op {
	case "createRun", "bindRun":
		return mapped(rec, func(b run.Bound) (any, error) { return s.withToken(rx, b) })
	case "createTask", "updateTask":
		return mapped(rec, func(c run.Created) (any, error) {
			var err error
			c.Task, err = run.Recall(rx, c.Task, "")
			return taskResult(c), err
		})
	case "registerWorker":
		return mapped(rec, func(i dispatch.Identified) (any, error) {
			i, err := s.cfg.Dispatch.WithToken(rx, i)
			return workerRegistered(i), err
		})
	case "drainWorker", "revokeWorker", "attachWorker":
		return mapped(rec, pure(workerResult))
	case "updateSession":
		return mapped(rec, pure(sessionResult))
	case "startWorker", "startRunWorker", "createDispatch":
		if rec.State == store.ReceiptRunning {
			r, err := s.cfg.Work.Started(rx, hub.DispatchID(rec.Object))
			r.Mutation.RequestID = rec.Key
			return startReceipt(r), err
		}
		return mapped(rec, pure(startReceipt))
	case "stopWorker", "abandonWorker":
		return mapped(rec, pure(stopResult))
	case "sendMessage", "replyMessage":
		return mapped(rec, pure(sendResult))
	case "sendMessages":
		return mapped(rec, pure(batchResult))
	case "checkMailbox":
		return mapped(rec, pure(checkResult))
	case "addRepo":
		return mapped(rec, pure(repoResult))
	}
	return json.RawMessage(rec.Body), nil
}

func mapped[T any](rec store.Receipt, show func(T) (any, error)) (any, error) {
	var out T
	if err := json.Unmarshal(rec.Body, &out); err != nil {
		return nil, err
	}
	return show(out)
}

func pure[T, Shown any](show func(T) Shown) func(T) (any, error) {
	return func(v T) (any, error) { return show(v), nil }
}

// withToken derives the secret of a binding that is still the present one.
func (s *Server) withToken(rx store.Rx, b run.Bound) (any, error) {
	if b.Binding == nil {
		return runBound(b), nil
	}
	var err error
	b.Binding.Token, err = s.cfg.Runs.Token(rx, *b.Binding)
	return runBound(b), err
}
