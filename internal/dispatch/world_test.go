package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
)

// world is one hub without its edges: a real store and the use-cases.
type world struct {
	t        *testing.T
	store    *sqlite.Store
	bus      *signal.Bus
	runs     *run.Service
	mail     *mail.Service
	dispatch *dispatch.Service
	id       string
	path     string
	later    hub.Micros  // how far the store's clock is ahead
	waiting  chan string // the key of each subscription: a claimed waiter waits
}

// Subscribe tells the test of each waiter; it implements mail.Bus.
func (w *world) Subscribe(topic, key string) (<-chan struct{}, func()) {
	ch, cancel := w.bus.Subscribe(topic, key)
	select {
	case w.waiting <- key:
	default:
	}
	return ch, cancel
}

type testTokens struct{}

func (testTokens) Consumer(r hub.RunID, g int64) string {
	return keystore.DeriveToken([]byte("k"), "whc_", "consumer", string(r), g)
}
func (testTokens) Sum(s string) string { return keystore.TokenSum(s) }

const operatorSum = "operator"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, bus: &signal.Bus{}, path: filepath.Join(t.TempDir(), "hub.db"), waiting: make(chan string, 100)}
	w.runs = &run.Service{Tokens: testTokens{}}
	w.mail = &mail.Service{Access: dispatch.Access{}, Bus: w, Draining: make(chan struct{})}
	w.dispatch = &dispatch.Service{}
	w.open()
	w.update(func(tx store.Tx) (err error) {
		if w.id, _, err = tx.StoreIdentity(); err != nil {
			return err
		}
		return tx.PutCredential(store.Credential{Sum: operatorSum, Kind: store.CredOperator})
	})
	return w
}

// open opens the store of the world's file.
func (w *world) open() {
	w.t.Helper()
	st, err := sqlite.Open(w.t.Context(), sqlite.Config{
		Path: w.path,
		Now:  func() hub.Micros { return hub.MicrosOf(time.Now()) + w.later },
		Publish: func(ss []hub.Signal) {
			for _, s := range ss {
				w.bus.Publish(string(s.Topic), s.Key)
			}
		},
		OnFatal: func(err error) { w.t.Error(err) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := st.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.store, w.runs.Store, w.mail.Store, w.dispatch.Store = st, st, st, st
}

// copied is the store's file as it is now.
func (w *world) copied() []byte {
	w.t.Helper()
	w.shut()
	raw, err := os.ReadFile(w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	w.open()
	return raw
}

// putBack stops the hub and puts an older copy of its file in place.
func (w *world) putBack(raw []byte) {
	w.t.Helper()
	w.shut()
	if err := os.WriteFile(w.path, raw, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

func (w *world) shut() {
	w.t.Helper()
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) update(fn func(store.Tx) error) {
	w.t.Helper()
	if err := w.store.Update(context.Background(), store.New, fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) view(fn func(store.Rx) error) {
	w.t.Helper()
	if err := w.store.View(context.Background(), fn); err != nil {
		w.t.Fatal(err)
	}
}

func operator() hub.Principal {
	return hub.Principal{Kind: hub.Operator, Credential: operatorSum}
}

func worker(d hub.DispatchID) hub.Principal {
	return hub.Principal{Kind: hub.DispatchCap, ID: string(d), Credential: "cap-" + string(d)}
}

func (w *world) request(p hub.Principal, op string, args any) receipt.Request {
	w.t.Helper()
	r, err := receipt.New(p, "", op, args)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// newRun creates a Run and returns its consumer.
func (w *world) newRun() (hub.RunID, hub.Principal) {
	w.t.Helper()
	b, err := w.runs.Create(context.Background(), w.request(operator(), "run.create", nil), run.CreateInput{Objective: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
	p := operator()
	p.Consumer = hub.ConsumerProof{Run: b.Run.ID, Generation: b.Run.Generation}
	return b.Run.ID, p
}

func (w *world) newTask(r hub.RunID, deps ...hub.TaskID) hub.TaskID {
	w.t.Helper()
	c, err := w.runs.CreateTask(context.Background(), w.request(operator(), "task.create", hub.NewRequestID()), r, hub.Task{Spec: "do it", Dependencies: deps})
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Task.ID
}

// begin starts a local Dispatch of the Task and makes it ready.
func (w *world) begin(task hub.TaskID) hub.DispatchID {
	w.t.Helper()
	id, err := w.attempt(task, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// attempt is begin for a first start or a retry, which may be refused.
func (w *world) attempt(task hub.TaskID, retryOf hub.DispatchID) (hub.DispatchID, error) {
	id := hub.NewDispatchID()
	return id, w.store.Update(context.Background(), store.New, func(tx store.Tx) error {
		d, err := dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: task, RetryOf: retryOf, Request: hub.NewRequestID()})
		if err != nil {
			return err
		}
		a := hub.Attachment{Dispatch: id, Task: task, Run: d.Run, Capability: hub.CapActive, Completion: "report"}
		if err := dispatch.Attach(tx, a, "cap-"+string(id)); err != nil {
			return err
		}
		_, err = dispatch.EndStart(tx, id, dispatch.Start{Event: hub.EvStarted})
		return err
	})
}

func (w *world) send(p hub.Principal, in dispatch.SendInput) (dispatch.Sent, error) {
	return w.dispatch.Send(context.Background(), w.request(p, "message.send", hub.NewRequestID()), in)
}

func report(task hub.TaskID, d hub.DispatchID, o hub.Outcome, body string) dispatch.SendInput {
	return dispatch.SendInput{Type: hub.TypeWorkerDone, Subject: "s", Body: body, Report: hub.Report{Task: task, Dispatch: d, Outcome: o}}
}

func (w *world) states(task hub.TaskID, id hub.DispatchID) (t hub.Task, d hub.Dispatch) {
	w.t.Helper()
	w.view(func(rx store.Rx) (err error) {
		if t, err = rx.Task(task); err != nil {
			return err
		}
		d, err = rx.Dispatch(id)
		return err
	})
	return t, d
}

func (w *world) check(p hub.Principal, in mail.CheckInput) (mail.Batch, error) {
	return w.mail.Check(context.Background(), w.request(p, "mailbox.check", in), in)
}

// inbox returns everything in the Run's mailbox, delivered or not.
func (w *world) inbox(r hub.RunID) []hub.Message {
	w.t.Helper()
	h, err := w.mail.History(context.Background(), operator(), mail.HistoryInput{Box: r.Box(), Limit: 10_000})
	if err != nil {
		w.t.Fatal(err)
	}
	return h.Messages
}
