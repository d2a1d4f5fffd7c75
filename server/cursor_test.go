package server

import (
	"encoding/base64"
	"fmt"
	"testing"
)

func TestListsPage(t *testing.T) {
	w := newWorld(t)
	var run string
	for i := range 5 {
		run = w.post(201, "/v1/runs", fmt.Sprintf(`{"objective":"run %d"}`, i)).text("run", "run_id")
	}
	seen, path := 0, "/v1/runs?limit=2"
	for range 4 {
		page := w.get(200, path)
		seen += len(page.at("runs").([]any))
		next := page.text("next_cursor")
		if next == "" {
			break
		}
		path = "/v1/runs?limit=2&cursor=" + next
	}
	if seen != 5 {
		t.Errorf("%d Runs on all pages", seen)
	}
	for i := range 3 {
		w.post(201, "/v1/runs/"+run+"/tasks", fmt.Sprintf(`{"spec":"%d"}`, i))
	}
	first := w.get(200, "/v1/runs/"+run+"/tasks?limit=2")
	rest := w.get(200, "/v1/runs/"+run+"/tasks?limit=2&cursor="+first.text("next_cursor"))
	if n := len(rest.at("tasks").([]any)); n != 1 || rest.at("next_cursor") != nil {
		t.Errorf("second page: %s", rest.raw)
	}
}

func TestCursorsOfOtherListsAreRefused(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		w.post(201, "/v1/runs", `{"objective":"x"}`)
	}
	cursor := w.get(200, "/v1/runs?limit=1").text("next_cursor")
	w.get(200, "/v1/runs?cursor="+cursor)
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		forged := append([]byte(nil), raw...)
		forged[i] ^= 1
		w.refuseCursor("/v1/runs?cursor=" + base64.RawURLEncoding.EncodeToString(forged))
	}
	for _, path := range []string{
		"/v1/runs?cursor=!", "/v1/runs?cursor=" + cursor[:8], "/v1/runs?cursor=" + cursor + "AA",
		"/v1/repos?cursor=" + cursor, "/v1/dispatches?cursor=" + cursor, "/v1/worktrees?cursor=" + cursor,
	} {
		w.refuseCursor(path)
	}
	if got := w.server.cursor(list{"a", "b"}, 7); *got == *w.server.cursor(list{"ab"}, 7) {
		t.Error("filters run into each other")
	}
}

func (w *world) refuseCursor(path string) {
	w.t.Helper()
	if got := w.get(400, path); got.code() != "cursor_invalid" {
		w.t.Errorf("%s: %s", path, got.raw)
	}
}
