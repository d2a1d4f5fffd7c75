package server

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// bodies are the texts of an answer's messages.
func (r response) bodies() []string {
	var out []string
	for _, m := range r.at("messages").([]any) {
		out = append(out, m.(map[string]any)["body"].(string))
	}
	return out
}

// fill puts messages into the Run's mailbox.
func (w *world) fill(run, kind string, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		w.post(201, "/v1/messages", `{"to":"run:`+run+`","type":"`+kind+`","body":"`+text+`"}`)
	}
}

func history(run, query string) string { return "/v1/mailboxes/run:" + run + "/messages?" + query }

// TestAcceptance_I09_LookingKeepsTheBatch: a peek and an all between two checks
// change neither the batch nor its id, and store nothing; all shows what has
// been delivered and acknowledged, too.
func TestAcceptance_I09_LookingKeepsTheBatch(t *testing.T) {
	w := newWorld(t)
	run, consumer := w.bound()
	w.fill(run, "status", "a")
	old := w.must(200, w.check(run, consumer, `{}`)).text("delivery_id")
	w.must(200, w.check(run, consumer, `{"ack":"`+old+`"}`))
	w.fill(run, "status", "b", "c")
	first := w.must(200, w.check(run, consumer, `{}`))
	w.fill(run, "status", "d")
	before := w.commits.Load()
	for query, want := range map[string][]string{"mode=peek": {"b", "c", "d"}, "mode=all": {"a", "b", "c", "d"}, "": {"a", "b", "c", "d"}} {
		if got := w.get(200, history(run, query)); !slices.Equal(got.bodies(), want) || got.at("next_cursor") != nil {
			t.Errorf("%q shows %q", query, got.bodies())
		}
	}
	if n := w.commits.Load() - before; n != 0 {
		t.Errorf("looking made %d commits", n)
	}
	again := w.must(200, w.check(run, consumer, `{}`))
	if again.text("delivery_id") != first.text("delivery_id") || again.at("replayed") != true || again.at("waiting_behind") != 1.0 ||
		fmt.Sprint(again.at("messages")) != fmt.Sprint(first.at("messages")) {
		t.Errorf("the batch was\n%s\nand is\n%s", first.raw, again.raw)
	}
}

// TestAcceptance_I10_UnknownMailboxesAreErrors: a look into a mailbox that there
// is not is no empty list.
func TestAcceptance_I10_UnknownMailboxesAreErrors(t *testing.T) {
	w := newWorld(t)
	for box, code := range map[string]string{
		"dispatch:" + string(hub.NewDispatchID()): "mailbox_not_found", "worker:none": "mailbox_not_found", "task:x": "mailbox_not_found",
		"none": "mailbox_not_found", "run:": "mailbox_not_found", "run:" + string(hub.NewRunID()): "run_not_found",
	} {
		for _, mode := range []string{"peek", "all"} {
			for _, token := range []string{w.operator, w.reader} {
				got := w.do(request{method: "GET", path: "/v1/mailboxes/" + box + "/messages?mode=" + mode, token: token})
				if got.status != 404 || got.code() != code {
					t.Errorf("%s of %s: %d %s", mode, box, got.status, got.raw)
				}
			}
		}
	}
}

// TestPagesOfHistoryJoin: however a mailbox is paged, each message is on one
// page, in its order, also when mail comes and is consumed meanwhile.
func TestPagesOfHistoryJoin(t *testing.T) {
	for _, mode := range []string{"peek", "all"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			run, consumer := w.bound()
			var want []string
			for i := range 7 {
				w.fill(run, []string{"status", "handoff"}[i%2], fmt.Sprint(i))
				want = append(want, fmt.Sprint(i))
			}
			got := w.pages(history(run, "mode="+mode+"&limit=2"), func() {})
			if !slices.Equal(got, want) {
				t.Errorf("pages of two hold %q", got)
			}
			if got = w.pages(history(run, "mode="+mode+"&limit=2&types=status"), func() {}); !slices.Equal(got, []string{"0", "2", "4", "6"}) {
				t.Errorf("of one type: %q", got)
			}
			batch := w.must(200, w.check(run, consumer, `{"limit":2}`)).text("delivery_id")
			got = w.pages(history(run, "mode="+mode+"&limit=3"), func() {
				if batch != "" {
					w.must(200, w.check(run, consumer, `{"limit":1,"ack":"`+batch+`"}`))
					w.fill(run, "status", "7")
					batch = ""
				}
			})
			if !slices.Equal(got, append(want, "7")) {
				t.Errorf("with an ack and new mail behind the first page: %q", got)
			}
		})
	}
}

// pages follows the cursors of a list; between happens behind each page.
func (w *world) pages(path string, between func()) []string {
	w.t.Helper()
	var all []string
	for cursor := ""; ; {
		page := w.get(200, path+cursor)
		all = append(all, page.bodies()...)
		next := page.text("next_cursor")
		if next == "" {
			return all
		}
		if len(all) > 100 {
			w.t.Fatal("the pages never end")
		}
		cursor = "&cursor=" + next
		between()
	}
}

// TestCursorsOfOtherHistoriesAreRefused: a cursor is good for its mailbox, its
// mode and its types.
func TestCursorsOfOtherHistoriesAreRefused(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	other, _ := w.bound()
	w.fill(run, "status", "a", "b")
	w.fill(other, "status", "a", "b")
	next := func(run, query string) string {
		cursor := w.get(200, history(run, query+"&limit=1")).text("next_cursor")
		if cursor == "" {
			t.Fatalf("%s has one page only", query)
		}
		return cursor
	}
	peek, typed := next(run, "mode=peek"), next(run, "mode=peek&types=status,handoff")
	w.get(200, history(run, "mode=peek&cursor="+peek))
	w.get(200, history(run, "mode=peek&types=handoff,status&cursor="+typed))
	for _, path := range []string{
		history(run, "mode=all&cursor="+peek), history(run, "cursor="+peek), history(run, "mode=peek&types=status&cursor="+peek),
		history(run, "mode=peek&cursor="+typed), history(run, "mode=peek&types=status&cursor="+typed),
		history(other, "mode=peek&cursor="+peek), "/v1/runs?cursor=" + peek,
	} {
		w.refuseCursor(path)
	}
	raw, err := base64.RawURLEncoding.DecodeString(peek)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		forged := slices.Clone(raw)
		forged[i] ^= 1
		w.refuseCursor(history(run, "mode=peek&cursor="+base64.RawURLEncoding.EncodeToString(forged)))
	}
}
