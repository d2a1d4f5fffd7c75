package server

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"
)

// TestOnlyFailedCredentialsAreDelayed: with a delay that never ends, a failed
// credential is answered when its client leaves or when there is no room to
// wait, and a valid one at once.
func TestOnlyFailedCredentialsAreDelayed(t *testing.T) {
	w := newWorld(t)
	w.server.delay = time.Hour
	w.get(200, "/v1/runs")
	ctx, cancel := context.WithCancel(t.Context())
	bad := request{method: "GET", path: "/v1/runs", token: tokenOf("whu_", "nobody")}
	done := make(chan int, 1)
	go func() {
		rec := httptest.NewRecorder()
		w.server.API().ServeHTTP(rec, bad.http().WithContext(ctx))
		done <- rec.Code
	}()
	eventually(t, func() bool { return len(w.server.failures) == 1 })
	w.get(200, "/v1/runs")
	cancel()
	if code := <-done; code != 401 {
		t.Errorf("status %d", code)
	}
	for range cap(w.server.failures) {
		w.server.failures <- struct{}{}
	}
	w.must(401, bad)
}

func TestEveryRefusedCredentialGetsTheSameAnswer(t *testing.T) {
	w := newWorld(t)
	q := request{method: "GET", path: "/v1/runs"}
	want := w.must(401, q)
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Basic " + w.operator, "Bearer " + w.operator + " ", "Bearer  " + w.operator, w.operator,
		"Bearer " + w.operator[:len(w.operator)-1], "Bearer " + tokenOf("whu_", "nobody"), "Bearer " + tokenOf("whc_", "operator"),
		"Bearer " + tokenOf("whd_", "operator"), "Bearer whu_" + w.reader[len("whr_"):],
	} {
		q.header = map[string]string{"Authorization": header}
		if got := w.must(401, q); got.raw != want.raw {
			t.Errorf("%q: %s", header, got.raw)
		}
	}
	r := q.http()
	r.Header["Authorization"] = []string{"Bearer " + w.operator, "Bearer " + w.operator}
	if got := serve(t, w.server.API(), r); got.status != 401 {
		t.Errorf("two credentials: %d", got.status)
	}
	q.header = map[string]string{"Authorization": "bEARER " + w.operator}
	w.must(200, q)
}
