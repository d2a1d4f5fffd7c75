package server

import (
	"testing"
	"time"
)

// TestWaitForTheEndOfADispatch: the answer comes with the commit that ends it, or
// when the time is up.
func TestWaitForTheEndOfADispatch(t *testing.T) {
	w := newWorld(t)
	_, dispatch := w.started()
	path := "/v1/dispatches/" + dispatch
	if got := w.get(200, path+"?wait_ms=1"); got.text("dispatch", "state") != "ready" {
		t.Errorf("after the time: %s", got.raw)
	}
	answer := make(chan response, 1)
	go func() { answer <- w.do(request{method: "GET", path: path + "?wait_ms=600000", token: w.operator}) }()
	eventually(t, func() bool { return w.server.meter.waits.Load() == 1 })
	w.post(200, path+"/stop", `{}`)
	select {
	case got := <-answer:
		if got.status != 200 || got.text("dispatch", "state") != "stopped" {
			t.Errorf("after the end: %d %s", got.status, got.raw)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the wait does not end")
	}
	if got := w.get(200, path+"?wait_ms=600000"); got.text("dispatch", "state") != "stopped" {
		t.Errorf("of one that has ended: %s", got.raw)
	}
	if got := w.get(404, "/v1/dispatches/none?wait_ms=600000"); got.code() != "dispatch_not_found" {
		t.Errorf("of none: %s", got.raw)
	}
}

func TestAWaitForADispatchEndsWithTheHub(t *testing.T) {
	w := newWorld(t)
	_, dispatch := w.started()
	answer := make(chan response, 1)
	go func() {
		answer <- w.do(request{method: "GET", path: "/v1/dispatches/" + dispatch + "?wait_ms=600000", token: w.reader})
	}()
	eventually(t, func() bool { return w.server.meter.waits.Load() == 1 })
	w.server.Drain()
	if got := <-answer; got.code() != "hub_draining" {
		t.Errorf("%d %s", got.status, got.raw)
	}
}
