package receipt_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

var engine = hub.Principal{Kind: hub.Engine}

func TestDerivedKeys(t *testing.T) {
	seen := map[hub.RequestID][]string{}
	for _, parts := range [][]string{
		{}, {""}, {"", ""}, {"wave/1", "wave_1", "a", "start", "-"}, {"wave/1", "wave_1", "a", "stop", "-"}, {"wave/1wave_1", "a", "start", "-"},
		{"a", "bc"}, {"ab", "c"}, {"abc"}, {"\x00\x00\x00\x00\x00\x00\x00\x01a"}, {"a\x00\x00\x00\x00\x00\x00\x00\x01b"}, {"a", "b"}, {strings.Repeat("x", 1<<20)},
	} {
		key := receipt.DerivedKey(parts...)
		if !hub.ValidID(hub.PrefixRequest, string(key)) || key != receipt.DerivedKey(slices.Clone(parts)...) {
			t.Errorf("%q gives %q", parts, key)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%.80q and %.80q give the same", parts, other)
		}
		seen[key] = parts
	}
	// Keys are derived again after an upgrade: this one never changes.
	if got := receipt.DerivedKey("wave/1", "wave_1", "a", "start", "-"); got != "req_0r85pbpanrpzzqjzb58eczc7ws" {
		t.Errorf("the key of a first start is %s", got)
	}
}

// Invariant 12: what was begun in somebody's transaction is observed, and shared with
// it the fate of its commit.
func TestBegunInATransactionIsObserved(t *testing.T) {
	st := open(t)
	jobs := group.New(t.Context())
	defer jobs.Stop(time.Second)
	e := &effects{release: make(chan struct{})}
	close(e.release)
	r := request(t, engine, receipt.DerivedKey("x"), "x")
	begin := func(tx store.Tx) (answer, error) {
		a, err := receipt.BeginInTx(tx, r, func(store.Tx) (answer, error) { return answer{Value: 1}, nil })
		if err == nil && (a.Mutation.Replayed || a.Mutation.RequestID != r.Key) {
			t.Errorf("it is begun as %+v", a.Mutation)
		}
		return a, err
	}
	refused := errors.New("the caller goes back")
	err := st.Update(t.Context(), store.New, func(tx store.Tx) error {
		_, err := begin(tx)
		return errors.Join(err, refused)
	})
	if !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if _, found := recordOf(t, st, r); found {
		t.Fatal("it is on record although its transaction was given up")
	}
	err = st.Update(t.Context(), store.New, func(tx store.Tx) error {
		if _, err := begin(tx); err != nil {
			return err
		}
		again, err := receipt.BeginInTx(tx, r, func(store.Tx) (answer, error) { return answer{}, errors.New("begun twice") })
		if err == nil && (again.Value != 1 || !again.Mutation.Replayed) {
			t.Errorf("begun again it is %+v", again)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if rec, found := recordOf(t, st, r); !found || rec.State != store.ReceiptRunning {
		t.Fatalf("it is on record as %+v", rec)
	}
	op := e.operation()
	op.Begin = func(store.Tx) (answer, error) { return answer{}, errors.New("begun by Long") }
	for range 2 {
		got, err := receipt.Long(t.Context(), receipt.NewGate(st, jobs.Go), r, op)
		if err != nil || got.Value != 3 || !got.Mutation.Replayed {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if e.observed.Load() != 1 || e.performed.Load() != 0 {
		t.Errorf("it was observed %d times and performed %d times", e.observed.Load(), e.performed.Load())
	}
	other := request(t, engine, r.Key, "another")
	if err := st.Update(t.Context(), store.New, func(tx store.Tx) error {
		_, err := receipt.BeginInTx(tx, other, func(store.Tx) (answer, error) { return answer{}, nil })
		return err
	}); !hub.IsCode(err, hub.CodeRequestMismatch) {
		t.Errorf("another request under its key: %v", err)
	}
}

// Invariant 12: what is decided is begun, however many requests of its principal are
// unfinished; a request that somebody makes is refused then.
func TestWhatIsDecidedIsBegunBesideManyOthers(t *testing.T) {
	st := open(t)
	for first := 0; first < receipt.MaxUnfinished; first += 1000 {
		if err := st.Update(t.Context(), store.New, func(tx store.Tx) (err error) {
			for n := range 1000 {
				rec, bad := request(t, engine, receipt.DerivedKey("open", strconv.Itoa(first+n)), "x").Record(tx.Now(), store.ReceiptRunning, &answer{})
				err = errors.Join(err, bad, tx.PutReceipt(rec))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	r := request(t, engine, receipt.DerivedKey("stop"), "x")
	if err := st.Update(t.Context(), store.Settle, func(tx store.Tx) error {
		_, err := receipt.BeginInTx(tx, r, func(store.Tx) (answer, error) { return answer{}, nil })
		return err
	}); err != nil {
		t.Fatal(err)
	}
	jobs := group.New(t.Context())
	defer jobs.Stop(time.Second)
	_, err := receipt.Long(t.Context(), receipt.NewGate(st, jobs.Go), request(t, engine, receipt.DerivedKey("start"), "x"), (&effects{}).operation())
	if !hub.IsCode(err, hub.CodeReceiptsFull) {
		t.Errorf("a start: %v", err)
	}
}

func recordOf(t *testing.T, st store.Store, r receipt.Request) (rec store.Receipt, found bool) {
	t.Helper()
	err := st.View(t.Context(), func(rx store.Rx) (err error) {
		rec, found, err = rx.Receipt(r.Principal.Space(), r.Key)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec, found
}

// Invariant 10: the engine's answers do not age, and are not swept.
func TestAnswersOfTheEngineStay(t *testing.T) {
	a := newAging(t)
	do := func(p hub.Principal, key hub.RequestID) (answer, error) {
		return receipt.Do(t.Context(), a.st, store.New, request(t, p, key, "x"), func(store.Tx) (answer, error) { return answer{Value: 7}, nil })
	}
	own, theirs := receipt.DerivedKey("own"), hub.NewRequestID()
	for key, p := range map[hub.RequestID]hub.Principal{own: engine, theirs: operator} {
		if _, err := do(p, key); err != nil {
			t.Fatal(err)
		}
	}
	a.pass(2 * receipt.BodyLife)
	if n, err := receipt.Sweep(t.Context(), a.st); err != nil || n != 2 {
		t.Fatalf("the sweep passed %d: %v", n, err)
	}
	if got, err := do(engine, own); err != nil || got.Value != 7 || !got.Mutation.Replayed {
		t.Errorf("the engine's: %+v, %v", got, err)
	}
	if _, err := do(operator, theirs); !hub.IsCode(err, hub.CodeRequestExpired) {
		t.Errorf("the operator's: %v", err)
	}
}
