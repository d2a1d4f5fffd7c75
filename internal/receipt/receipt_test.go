package receipt_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
)

type answer struct {
	Value    int          `json:"value"`
	Unknown  bool         `json:"unknown"`
	Run      hub.RunID    `json:"-"`
	Mutation hub.Mutation `json:"mutation"`
}

func (a *answer) Mut() *hub.Mutation { return &a.Mutation }

func (a *answer) Subject() (hub.RunID, string) { return a.Run, "made" }

func open(t *testing.T) *sqlite.Store { return openAt(t, nil) }

func openAt(t *testing.T, now func() hub.Micros) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "hub.db"), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	err = st.Update(t.Context(), store.New, func(tx store.Tx) error {
		return errors.Join(
			tx.PutCredential(store.Credential{Sum: "op", Kind: store.CredOperator}),
			tx.PutCredential(store.Credential{Sum: "cap", Kind: store.CredDispatch, Subject: "dispatch_1"}))
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

var operator = hub.Principal{Kind: hub.Operator, Credential: "op"}

func request(t *testing.T, p hub.Principal, key hub.RequestID, args any) receipt.Request {
	t.Helper()
	r, err := receipt.New(p, key, "test", args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Invariants 2 and 3.
func TestAcceptance_Q02_MismatchShowsNothing(t *testing.T) {
	st := open(t)
	key := hub.NewRequestID()
	do := func(r receipt.Request) (answer, error) {
		return receipt.Do(t.Context(), st, store.New, r, func(store.Tx) (answer, error) { return answer{Value: 42}, nil })
	}
	if a, err := do(request(t, operator, key, "x")); err != nil || a.Mutation.Replayed || a.Mutation.RequestID != key {
		t.Fatalf("%+v %v", a, err)
	}
	if a, err := do(request(t, operator, key, "x")); err != nil || !a.Mutation.Replayed || a.Value != 42 {
		t.Fatalf("%+v %v", a, err)
	}
	other := request(t, operator, key, "x")
	other.Op = "other"
	for name, r := range map[string]receipt.Request{
		"payload":   request(t, operator, key, "y"),
		"operation": other,
		"principal": request(t, hub.Principal{Kind: hub.DispatchCap, ID: "dispatch_1", Credential: "cap"}, key, "x"),
	} {
		if a, err := do(r); !hub.IsCode(err, hub.CodeRequestMismatch) || a.Value != 0 {
			t.Errorf("another %s: %+v %v", name, a, err)
		}
	}
}

// Invariant 1.
func TestAcceptance_Q03_ParallelRequestsHaveOneEffect(t *testing.T) {
	st := open(t)
	key := hub.NewRequestID()
	var all sync.WaitGroup
	var replayed atomic.Int32
	for range 500 {
		all.Go(func() {
			a, err := receipt.Do(context.Background(), st, store.New, request(t, operator, key, "x"), func(tx store.Tx) (answer, error) {
				r := hub.Run{ID: hub.NewRunID(), Objective: "once"}
				return answer{Value: 7}, tx.PutRun(r)
			})
			if err != nil || a.Value != 7 {
				t.Errorf("%+v %v", a, err)
			}
			if a.Mutation.Replayed {
				replayed.Add(1)
			}
		})
	}
	all.Wait()
	var runs []hub.Run
	err := st.View(t.Context(), func(rx store.Rx) (err error) {
		runs, _, err = rx.RunList(store.Page{Limit: 10})
		return err
	})
	if err != nil || len(runs) != 1 || replayed.Load() != 499 {
		t.Fatalf("%d effects, %d replays, %v", len(runs), replayed.Load(), err)
	}
}

// Invariant 4.
func TestAcceptance_Q06_RefusalsAreNotRecorded(t *testing.T) {
	st := open(t)
	key := hub.NewRequestID()
	refused := hub.Invalid("x", "no")
	_, err := receipt.Do(t.Context(), st, store.New, request(t, operator, key, "bad"), func(store.Tx) (answer, error) { return answer{}, refused })
	if !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Fatal(err)
	}
	a, err := receipt.Do(t.Context(), st, store.New, request(t, operator, key, "good"), func(store.Tx) (answer, error) { return answer{Value: 1}, nil })
	if err != nil || a.Mutation.Replayed {
		t.Fatalf("the corrected request: %+v %v", a, err)
	}
}

// Invariant 6.
func TestCredentialIsCheckedInTheTransaction(t *testing.T) {
	st := open(t)
	for _, p := range []hub.Principal{
		{Kind: hub.Operator, Credential: "gone"},
		{Kind: hub.Operator, Credential: "cap"},
		{Kind: hub.PeerKey, ID: "hub_x", Credential: string(hub.NewPeerID())},
		{},
	} {
		_, err := receipt.Do(t.Context(), st, store.New, request(t, p, "", "x"), func(store.Tx) (answer, error) {
			t.Errorf("%+v had an effect", p)
			return answer{}, nil
		})
		if err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

// effects counts what an operation did, outside the store.
type effects struct {
	performed, observed atomic.Int32
	release             chan struct{}
	unknown             bool
}

func (e *effects) operation() receipt.Operation[answer] {
	return receipt.Operation[answer]{
		Class: store.New,
		Begin: func(store.Tx) (answer, error) { return answer{Value: 1}, nil },
		Perform: func(_ context.Context, a answer) (answer, error) {
			e.performed.Add(1)
			<-e.release
			return answer{Value: 2, Unknown: e.unknown}, nil
		},
		Observe: func(_ context.Context, a answer) (answer, error) {
			e.observed.Add(1)
			return answer{Value: 3}, nil
		},
		Unknown: func(a answer) bool { return a.Unknown },
	}
}

// Invariant 7.
func TestLongOperationsJoin(t *testing.T) {
	st := open(t)
	jobs := group.New(context.Background())
	defer jobs.Stop(0)
	g := receipt.NewGate(st, jobs.Go)
	e := &effects{release: make(chan struct{})}
	r := request(t, operator, "", "x")
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := receipt.Long(gone, g, r, e.operation())
		left <- err
	}()
	for e.performed.Load() == 0 {
	}
	leave() // the first caller goes away; the operation does not
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	got := make(chan answer, 1)
	go func() {
		a, err := receipt.Long(t.Context(), g, r, e.operation())
		if err != nil {
			t.Error(err)
		}
		got <- a
	}()
	other := r
	other.Payload = []byte(`"y"`)
	if _, err := receipt.Long(t.Context(), g, other, e.operation()); !hub.IsCode(err, hub.CodeRequestMismatch) {
		t.Errorf("another payload joins: %v", err)
	}
	close(e.release)
	if a := <-got; a.Value != 2 {
		t.Errorf("%+v", a)
	}
	a, err := receipt.Long(t.Context(), g, r, e.operation())
	if err != nil || a.Value != 2 || !a.Mutation.Replayed || e.performed.Load() != 1 || e.observed.Load() != 0 {
		t.Errorf("the record: %+v %v, performed %d", a, err, e.performed.Load())
	}
}

// Invariant 8.
func TestUnknownIsObservedNotRepeated(t *testing.T) {
	st := open(t)
	jobs := group.New(context.Background())
	defer jobs.Stop(0)
	e := &effects{release: make(chan struct{}), unknown: true}
	close(e.release)
	r := request(t, operator, "", "x")
	if a, err := receipt.Long(t.Context(), receipt.NewGate(st, jobs.Go), r, e.operation()); err != nil || !a.Unknown {
		t.Fatalf("%+v %v", a, err)
	}
	for i := range 2 { // as a new process would: with a fresh gate
		a, err := receipt.Long(t.Context(), receipt.NewGate(st, jobs.Go), r, e.operation())
		if err != nil || a.Value != 3 || !a.Mutation.Replayed {
			t.Fatalf("repetition %d: %+v %v", i, a, err)
		}
	}
	if e.performed.Load() != 1 || e.observed.Load() != 1 {
		t.Errorf("performed %d, observed %d", e.performed.Load(), e.observed.Load())
	}
}

// Invariant 5.
func TestKeysOfPeersAreApart(t *testing.T) {
	st := open(t)
	id := hub.NewPeerID()
	err := st.Update(t.Context(), store.New, func(tx store.Tx) error {
		return tx.PutPeer(hub.Peer{ID: id, Name: "p", Lineage: "hub_p", Fingerprint: "hub_p", State: hub.PeerActive})
	})
	if err != nil {
		t.Fatal(err)
	}
	key := hub.NewRequestID()
	for _, p := range []hub.Principal{operator, {Kind: hub.PeerKey, ID: "hub_p", Credential: string(id)}} {
		a, err := receipt.Do(t.Context(), st, store.New, request(t, p, key, p.Name()), func(store.Tx) (answer, error) { return answer{}, nil })
		if err != nil || a.Mutation.Replayed {
			t.Errorf("%s: %+v %v", p.Name(), a, err)
		}
	}
}

func TestMalformedKeysAreRefused(t *testing.T) {
	for _, key := range []hub.RequestID{"x", "req_", "req_1", "run_" + hub.NewRequestID()[4:]} {
		if _, err := receipt.New(operator, key, "op", nil); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// TestADefiniteRefusalMayBeTriedAgain: a refusal without effect is no unfinished
// request, and the same id tries again.
func TestADefiniteRefusalMayBeTriedAgain(t *testing.T) {
	st := open(t)
	jobs := group.New(context.Background())
	defer jobs.Stop(0)
	g := receipt.NewGate(st, jobs.Go)
	op := receipt.Operation[answer]{
		Class: store.New, Definite: true,
		Begin:   func(store.Tx) (answer, error) { return answer{Value: 1}, nil },
		Perform: func(context.Context, answer) (answer, error) { return answer{}, hub.Invalid("code", "wrong") },
		Observe: func(context.Context, answer) (answer, error) { return answer{Value: 2}, nil },
		Unknown: func(answer) bool { return false },
	}
	r := request(t, operator, "", "x")
	if _, err := receipt.Long(t.Context(), g, r, op); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Fatal(err)
	}
	err := st.Update(t.Context(), store.Settle, func(tx store.Tx) error {
		n, err := tx.UnfinishedReceipts(operator.Name())
		if n != 0 {
			t.Errorf("%d unfinished requests", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := receipt.Long(t.Context(), g, r, op); err != nil || a.Value != 2 {
		t.Errorf("%+v %v", a, err)
	}
}
