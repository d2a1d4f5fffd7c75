package storetest

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Options says how a store under test is made. Open returns an empty store
// that hands its signals to publish and is closed by t.Cleanup.
type Options struct {
	Open func(t *testing.T, publish func([]hub.Signal)) store.Store
}

// Run runs the suite; each test has a store of its own.
func Run(t *testing.T, o Options) {
	for _, c := range []struct {
		name string
		test func(*fixture)
	}{
		{"Receipts", receipts}, {"SweptReceipts", sweptReceipts}, {"Credentials", credentials},
		{"Runs", runs}, {"Bindings", bindings}, {"Audits", audits},
		{"Tasks", tasks}, {"TaskPages", taskPages}, {"Abbreviations", abbreviations},
		{"Dispatches", dispatches}, {"DispatchFilters", dispatchFilters}, {"SwapRace", swapRace},
		{"Attachments", attachments}, {"Holds", holds}, {"Beside", beside}, {"Posted", posted}, {"OpenAttachments", openAttachments}, {"AttachmentSignals", attachmentSignals},
		{"Workers", workers}, {"Assigned", assigned}, {"Sessions", sessions}, {"DroppedCredential", droppedCredential}, {"Withdrawn", withdrawn},
		{"Repos", repos}, {"Worktrees", worktrees}, {"Open worktrees", openWorktrees}, {"Terminals", terminals}, {"AttachedTo", attachedTo}, {"AttachmentsOf", attachmentsOf}, {"Outputs", outputs}, {"AgentPools", pools},
		{"Mailboxes", mailboxes}, {"Append", appendMail}, {"Batches", batches}, {"History", history},
		{"Verdicts", verdicts}, {"Deliveries", deliveries}, {"Questions", questions},
		{"Queues", queues}, {"QueueReads", queueReads}, {"Cursors", cursors},
		{"Peers", peers}, {"Invites", invites},
		{"Identity", identity}, {"Counts", counts}, {"Limits", limits},
		{"Isolation", isolation}, {"OwnWrites", ownWrites}, {"Panic", panics}, {"Cancelled", cancelled},
		{"Nested", nested}, {"TooLarge", tooLarge}, {"Signals", signals}, {"Concurrent", concurrent},
		{"Waves", waves}, {"WavePages", wavePages}, {"UnfiledWaves", unfiledWaves}, {"StagedWaves", stagedWaves}, {"Leftovers", leftovers}, {"ReplacedWaves", replacedWaves},
		{"WaveRows", waveRows}, {"WaveEdits", waveEdits}, {"WaveOrders", waveOrders}, {"WaveUsages", waveUsages}, {"RewrittenTasks", rewrittenTasks},
		{"Events", events}, {"EventPlaces", eventPlaces}, {"EventBytes", eventBytes}, {"SweptEvents", sweptEvents},
		{"MailModel", mailModel}, {"RelayModel", relayModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fixture{T: t}
			f.s = o.Open(t, f.publish)
			c.test(f)
		})
	}
}

// fixture is one store with what it published.
type fixture struct {
	*testing.T
	s store.Store

	mu   sync.Mutex
	sigs []hub.Signal // guarded by mu
}

func (f *fixture) publish(sigs []hub.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sigs = append(f.sigs, sigs...)
}

// published returns the signals since it was last called.
func (f *fixture) published() []hub.Signal {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.sigs
	f.sigs = nil
	return out
}

func (f *fixture) update(fn func(store.Tx) error) {
	f.Helper()
	if err := f.s.Update(context.Background(), store.New, fn); err != nil {
		f.Fatalf("Update: %v", err)
	}
}

func (f *fixture) view(fn func(store.Rx) error) {
	f.Helper()
	if err := f.s.View(context.Background(), fn); err != nil {
		f.Fatalf("View: %v", err)
	}
}

// refused runs fn, which must fail with the code.
func (f *fixture) refused(code hub.Code, fn func(store.Tx) error) {
	f.Helper()
	if err := f.s.Update(context.Background(), store.New, fn); !hub.IsCode(err, code) {
		f.Errorf("got %v (code %s), want code %s", err, hub.CodeOf(err), code)
	}
}

func equal(f *fixture, want, got any) {
	f.Helper()
	if d := cmp.Diff(want, got); d != "" {
		f.Errorf("stored and read differ (-want +got):\n%s", d)
	}
}

// same checks a read that has to succeed.
func same[T any](f *fixture, want T) func(got T, err error) error {
	f.Helper()
	return func(got T, err error) error {
		f.Helper()
		if err == nil {
			equal(f, want, got)
		}
		return err
	}
}

// found is same for reads with an ok result.
func found[T any](f *fixture, want T) func(got T, ok bool, err error) error {
	f.Helper()
	return func(got T, ok bool, err error) error {
		f.Helper()
		if err == nil && !ok {
			f.Errorf("%T was not found", want)
		} else if err == nil {
			equal(f, want, got)
		}
		return err
	}
}

func (f *fixture) absent(what string, ok bool, err error) error {
	f.Helper()
	if ok {
		f.Errorf("%s was found", what)
	}
	return err
}

// filled returns a value whose fields all differ, so that swapped or forgotten
// columns show.
func filled[T any](n *int) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), n)
	return v
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("text-" + string(rune('a'+*n%26)) + "-" + itoa(*n) + " ü'\"\n")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) + 1<<40)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		fillSlice(v, n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("storetest: cannot fill a " + v.Kind().String())
	}
}

func fillSlice(v reflect.Value, n *int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte(`{"raw":` + itoa(*n) + `}`))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	for i := range 2 {
		fill(v.Index(i), n)
	}
}
