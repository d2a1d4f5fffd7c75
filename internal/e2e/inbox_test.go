//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

func TestAcceptance_I01_I02_I03_BatchesAndAcks(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, other := h.NewRun("batches"), h.NewRun("other")
	for i := range 53 {
		send(t, run, "status", itoa(i))
	}
	first := get[api.CheckResult](t, run.Caller, "check")
	send(t, run, "status", "53")
	again := get[api.CheckResult](t, run.Caller, "check", "--limit", "3")
	if first.Count != 50 || first.Replayed || first.WaitingBehind != 3 || !again.Replayed || again.WaitingBehind != 4 {
		t.Fatalf("counts: %d, %v, %d; then %v, %d", first.Count, first.Replayed, first.WaitingBehind, again.Replayed, again.WaitingBehind)
	}
	if *again.DeliveryId != *first.DeliveryId || !sameMessages(first.Messages, again.Messages) {
		t.Error("the batch changed before it was acknowledged")
	}
	send(t, other, "status", "x")
	foreign := get[api.CheckResult](t, other.Caller, "check")
	refused(t, run.Caller, "stale_delivery", "check", "--ack", *foreign.DeliveryId)
	refused(t, run.Caller, "stale_delivery", "check", "--ack", id.New("delivery_"))
	refused(t, run.Caller, "invalid_argument", "check", "--ack", "delivery_x")
	acked := get[api.CheckResult](t, run.Caller, "check", "--ack", *first.DeliveryId)
	if acked.Count != 4 || *acked.Acknowledged != *first.DeliveryId || acked.Messages[0].Body != "50" {
		t.Fatalf("after the ack: %+v", acked)
	}
	repeated := get[api.CheckResult](t, run.Caller, "check", "--ack", *first.DeliveryId)
	if *repeated.DeliveryId != *acked.DeliveryId || repeated.Count != 4 || !repeated.Replayed {
		t.Errorf("a repeated ack consumed something: %+v", repeated)
	}
}

func sameMessages(a, b []api.Message) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].MessageId != b[i].MessageId || a[i].Seq != b[i].Seq || a[i].Body != b[i].Body {
			return false
		}
	}
	return true
}

func TestAcceptance_I04_UnacknowledgedMailSurvivesKills(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("survives")
	for i := range 3 {
		send(t, run, "status", itoa(i))
	}
	first := run.Check()
	h.Restart()
	again := run.Check()
	if *again.DeliveryId != *first.DeliveryId || !sameMessages(first.Messages, again.Messages) {
		t.Errorf("after kill -9 of the hub: %+v, want %+v", again, first)
	}
	cmd, wait := run.startWaiting(t, "check", "--wait", "--ack", *first.DeliveryId, "--timeout", "60s")
	send(t, run, "status", "3")
	_ = cmd.Process.Kill() // it may have got the batch already, or not
	wait()
	eventually(t, "the dead client's place is free", 2*time.Second, func() bool { return waiterFree(t, h.Client(run.Token), run) })
	after := run.Check()
	if after.Count != 1 || after.Messages[0].Body != "3" {
		t.Errorf("after kill -9 of the client: %+v", after)
	}
}

// startWaiting starts a command line that waits on the mailbox and returns
// when it does; wait collects it.
func (c Coordinator) startWaiting(t testing.TB, args ...string) (cmd *exec.Cmd, wait func()) {
	t.Helper()
	probe := c.hub.Client(c.Token)
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
		cmd := c.command(ctx, args...)
		must(t, cmd.Start())
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		wait := func() { <-ended; cancel() }
		eventually(t, "the command waits or has ended", 20*time.Second, func() bool {
			select {
			case <-ended:
				return true
			default:
				return !waiterFree(t, probe, c)
			}
		})
		select {
		case <-ended: // the look for the waiter was in its way
			cancel()
			continue
		default:
			return cmd, wait
		}
	}
	t.Fatal("the command never came to wait")
	return nil, nil
}

func TestAcceptance_I05_SecondWaiterIsRefused(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("waiters")
	first := beginCheck(t, run, client.CheckOptions{Wait: time.Minute})
	refused(t, run.Caller, "waiter_exists", "check", "--wait", "--timeout", "5s")
	if peek := get[api.HistoryPage](t, run.Caller, "check", "--peek"); len(peek.Messages) != 0 {
		t.Errorf("I9: peek beside a waiter: %+v", peek)
	}
	send(t, run, "status", "for the first")
	if got := first.get(t, 20*time.Second); got.err != nil || got.value.Count != 1 || got.value.Messages[0].Body != "for the first" {
		t.Errorf("the first waiter got %+v %v", got.value, got.err)
	}
}

func TestAcceptance_I06_TimeOutsAndDeadClients(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("time-outs")
	empty := get[api.CheckResult](t, run.Caller, "check", "--wait", "--timeout", "100ms")
	if !empty.TimedOut || empty.DeliveryId != nil || empty.Count != 0 || empty.Messages == nil {
		t.Errorf("a time-out is %+v", empty)
	}
	if r := run.CLI("check", "--wait", "--timeout", "50ms", "--exit-status"); r.Code != 7 {
		t.Errorf("--exit-status: exit %d", r.Code)
	}
	cmd, wait := run.startWaiting(t, "check", "--wait", "--timeout", "5m")
	must(t, cmd.Process.Kill())
	wait()
	probe := h.Client(run.Token)
	eventually(t, "the dead client's place is free", 2*time.Second, func() bool { return waiterFree(t, probe, run) })
	send(t, run, "status", "unread")
	if got := run.Check(); got.Count != 1 || got.Replayed {
		t.Errorf("the mail after a dead client: %+v", got)
	}
}

func TestAcceptance_I07_TheAckOfACutWaitIsRecorded(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("cut")
	send(t, run, "status", "one")
	first := run.Check()
	key := id.New("req_")
	cmd, wait := run.startWaiting(t, "check", "--ack", *first.DeliveryId, "--wait", "--timeout", "5m", "--retry-request", key)
	probe := h.Client("")
	eventually(t, "the ack is on record", 20*time.Second, func() bool {
		r, err := probe.Request(t.Context(), key)
		return err == nil && len(r.Response) > 0
	})
	must(t, cmd.Process.Kill())
	wait()
	shown := get[api.RequestDetail](t, h.Caller(), "request", "show", key)
	var recorded api.CheckResult
	must(t, json.Unmarshal(shown.Response, &recorded))
	if recorded.Acknowledged == nil || *recorded.Acknowledged != *first.DeliveryId {
		t.Errorf("the receipt shows %s", shown.Response)
	}
	if detail := get[api.RunDetail](t, run.Caller, "run", "current"); detail.Mailbox.Unacknowledged != 0 {
		t.Errorf("%d messages are not acknowledged", detail.Mailbox.Unacknowledged)
	}
}

func TestAcceptance_I08_DuplicatesOfOneWaitShareItsResult(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("duplicates")
	send(t, run, "status", "one")
	in := client.CheckOptions{Ack: *run.Check().DeliveryId, Wait: time.Minute}
	key := client.WithRequestID(id.New("req_"))
	calls := []background[*api.CheckResult]{beginCheck(t, run, in, key)}
	for range 4 {
		c := h.Client(run.Token)
		calls = append(calls, begin(t, func() (*api.CheckResult, error) { return c.Check(t.Context(), run.Box(), in, key) }))
	}
	send(t, run, "status", "two")
	var delivery string
	for i, call := range calls {
		got := call.get(t, 20*time.Second)
		if got.err != nil || got.value.Count != 1 || got.value.DeliveryId == nil {
			t.Fatalf("call %d got %+v %v", i, got.value, got.err)
		}
		if delivery == "" {
			delivery = *got.value.DeliveryId
		}
		if *got.value.DeliveryId != delivery || got.value.Messages[0].Body != "two" {
			t.Errorf("call %d got another result: %+v", i, got.value)
		}
	}
}

func TestAcceptance_I09_I10_LookingChangesNothing(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("looking")
	for i := range 3 {
		send(t, run, "status", itoa(i))
	}
	got := get[api.CheckResult](t, run.Caller, "check", "--limit", "2")
	get[api.CheckResult](t, run.Caller, "check", "--ack", *got.DeliveryId)
	peek, all := get[api.HistoryPage](t, run.Caller, "check", "--peek"), get[api.HistoryPage](t, run.Caller, "check", "--all")
	if len(peek.Messages) != 1 || len(all.Messages) != 3 {
		t.Errorf("peek shows %d, all %d", len(peek.Messages), len(all.Messages))
	}
	for _, args := range [][]string{
		{"--peek", "--all"}, {"--peek", "--wait"}, {"--all", "--ack", *got.DeliveryId}, {"--ack", ""}, {"--cursor", "x"},
		{"--types", "nonsense"}, {"--wait", "--timeout", "11m"}, {"--limit", "51"},
	} {
		refused(t, run.Caller, "invalid_argument", append([]string{"check"}, args...)...)
	}
	refused(t, run.Caller, "run_not_found", "check", "--run", id.New("run_"))
}

func TestAcceptance_I12_ManySendersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("order")
	each, senders := scaled(t, 100, 300, 1000), 10
	var wg sync.WaitGroup
	for s := range senders {
		c := h.Client("")
		wg.Go(func() {
			for i := range each {
				in := message(run, "status", fmt.Sprintf("%d/%d", s, i))
				err := insist(t.Context(), func(key client.Option) error { _, err := c.Send(t.Context(), in, key); return err })
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	consumer := h.Client(run.Token)
	drained := begin(t, func() ([]api.Message, error) { return drain(t.Context(), consumer, run.Box(), 2*time.Second) })
	wg.Wait()
	got := drained.get(t, 2*time.Minute)
	must(t, got.err)
	next := make([]int, senders)
	for _, m := range got.value {
		var s, i int
		if _, err := fmt.Sscanf(m.Body, "%d/%d", &s, &i); err != nil || next[s] != i {
			t.Fatalf("%q came, want %d/%d", m.Body, s, next[s])
		}
		next[s]++
	}
	for s, n := range next {
		if n != each {
			t.Errorf("sender %d: %d of %d arrived", s, n, each)
		}
	}
}

func TestAcceptance_I13_BodiesAreByteExactAndBounded(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("bodies")
	bodies := []string{"line\nline\r\n\ttab", `"quoted" \u0041 \n`, "ünï — 🚀\u202e", "\x1b[31m", strings.Repeat("x", 64<<10)}
	for _, body := range bodies {
		c := h.Caller()
		c.stdin = body
		get[api.SendResult](t, c, "send", "--to", run.Box(), "--type", "status", "--subject", "s", "--body-file", "-")
	}
	for i, m := range run.Check().Messages {
		if m.Body != bodies[i] {
			t.Errorf("body %d changed: %.60q", i, m.Body)
		}
	}
	for body, code := range map[string]string{strings.Repeat("x", 64<<10+1): "too_large", "a\x00b": "invalid_argument"} {
		c := h.Caller()
		c.stdin = body
		refused(t, c, code, "send", "--to", run.Box(), "--type", "status", "--subject", "s", "--body-file", "-")
	}
}

func TestAcceptance_I11_ABatchHasAtMostOneMebibyte(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("bytes")
	big := strings.Repeat("x", 64<<10)
	for range 20 {
		send(t, run, "status", big)
	}
	left := 20
	in := client.CheckOptions{}
	for c := h.Client(run.Token); left > 0; {
		b, err := c.Check(t.Context(), run.Box(), in)
		must(t, err)
		if b.Count < 1 || b.Count > 16 || b.WaitingBehind != int64(left-b.Count) {
			t.Fatalf("a batch of %d, %d behind, %d left", b.Count, b.WaitingBehind, left)
		}
		left, in.Ack = left-b.Count, *b.DeliveryId
	}
}
