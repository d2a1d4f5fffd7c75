package dispatch_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// events is the log of events, all of it.
func (w *world) events() (es []hub.WaveEvent) {
	w.t.Helper()
	w.view(func(rx store.Rx) (err error) { es, err = rx.Events(store.EventFilter{}, 0, 1000); return err })
	return es
}

// milestones are the names in the log of events, of one Dispatch of one Task.
func (w *world) milestones(r hub.RunID, task hub.TaskID, id hub.DispatchID) (names []string) {
	w.t.Helper()
	for _, e := range w.events() {
		var data struct {
			Name     string         `json:"name"`
			Dispatch hub.DispatchID `json:"dispatch_id"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil || e.Type != hub.EventMilestone || e.Run != r || e.Task != task || data.Dispatch != id {
			w.t.Errorf("an event is %+v: %s %v", e, e.Data, err)
		}
		names = append(names, data.Name)
	}
	return names
}

func reached(name string) dispatch.SendInput {
	in := status("going well")
	in.Milestone = name
	return in
}

func TestMilestonesOfALocalWorker(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	q := w.request(worker(id), "message.send", "one")
	for range 2 { // the second is the answer of the first
		if _, err := w.dispatch.Send(t.Context(), q, reached("half")); err != nil {
			t.Fatal(err)
		}
	}
	free := status("free")
	free.Payload = json.RawMessage(`{"milestone":"of a payload","more":1}`)
	long := status("long")
	long.Payload = fmt.Appendf(nil, `{"milestone":%q}`, strings.Repeat("x", 10_000))
	others := []dispatch.SendInput{status("plain"), free, long}
	for _, payload := range []string{`[]`, `"half"`, `{"milestone":1}`, `{"milestone":""}`, `null`} {
		odd := status("odd")
		odd.Payload = json.RawMessage(payload)
		others = append(others, odd)
	}
	escalation := reached("no status")
	escalation.Type = hub.TypeEscalation
	for _, in := range append(others, escalation) {
		if _, err := w.send(worker(id), in); err != nil {
			t.Fatal(err)
		}
	}
	told := reached("of no worker")
	told.To = r.Box()
	if _, err := w.send(consumer, told); err != nil {
		t.Fatal(err)
	}
	got := w.milestones(r, task, id)
	if len(got) != 3 || got[0] != "half" || got[1] != "of a payload" || len(got[2]) > hub.MaxSubjectBytes || !strings.HasPrefix(got[2], "xxx") {
		t.Errorf("the log has %.100q", got)
	}
	if es := w.events(); es[0].Wave != "" || es[0].Token != "" || es[0].Index != -1 {
		t.Errorf("of a Task of no wave: %+v", es[0])
	}
}

// The home takes a milestone in once, however often it comes, and not of a Dispatch
// that has ended; its owner's log stays empty.
func TestMilestonesOfARelayedWorker(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	p.mark(id, "one", "two")
	items := p.outbox()
	p.importHome(items)
	p.importHome(items) // the ack was lost
	if got := p.home.milestones(r, task, id); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("imported twice: %q", got)
	}
	p.mark(id, "late")
	p.abandon(id)
	p.importHome(p.outbox())
	if got := p.home.milestones(r, task, id); len(got) != 2 || len(p.home.inbox(r)) != 3 {
		t.Errorf("of an abandoned Dispatch: %q, %d messages", got, len(p.home.inbox(r)))
	}
	if es := p.owner.events(); len(es) != 0 {
		t.Errorf("the owner's log has %+v", es)
	}
}

func (p *pair) mark(id hub.DispatchID, names ...string) {
	p.t.Helper()
	for _, name := range names {
		if _, err := p.owner.send(worker(id), reached(name)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// A milestone of a wave's Task has its place in the wave.
func TestMilestonesOfAWave(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := hub.NewTaskID()
	w.update(func(tx store.Tx) error {
		wt := hub.WaveTask{Wave: "w1", Index: 0, Level: 1, Task: task, Entry: hub.WaveEntry{Token: "t1"}}
		if err := tx.StageWaveTasks("wave_u", []hub.WaveTask{wt}, []hub.Task{{ID: task, Run: r, State: hub.TaskReady}}); err != nil {
			return err
		}
		return tx.PutWave(hub.Wave{ID: "w1", UID: "wave_u", Run: r, Status: hub.WaveRunning, Total: 1})
	})
	id := w.begin(task)
	if _, err := w.send(worker(id), reached("half")); err != nil {
		t.Fatal(err)
	}
	if es := w.events(); len(es) != 1 || es[0].Wave != "w1" || es[0].Token != "t1" || es[0].Index != 0 || es[0].Total != 1 || es[0].Task != task {
		t.Errorf("the log has %+v", es)
	}
}
