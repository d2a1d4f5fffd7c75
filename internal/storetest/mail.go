package storetest

import (
	"fmt"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func mailboxes(f *fixture) {
	n := 0
	m := filled[store.Mailbox](&n)
	f.update(func(tx store.Tx) error { return tx.PutMailbox(m) })
	f.view(func(rx store.Rx) error { return same(f, m)(rx.Mailbox(m.Box)) })
	changed := filled[store.Mailbox](&n)
	changed.Box = m.Box
	f.update(func(tx store.Tx) error { return tx.SaveMailbox(changed) })
	f.view(func(rx store.Rx) error { return same(f, changed)(rx.Mailbox(m.Box)) })
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutMailbox(m) })
	f.refused(hub.CodeMailboxNotFound, func(tx store.Tx) error { return tx.SaveMailbox(filled[store.Mailbox](&n)) })
	f.refused(hub.CodeMailboxNotFound, func(tx store.Tx) error { _, err := tx.Mailbox("run:none"); return err })
	f.refused(hub.CodeMailboxNotFound, func(tx store.Tx) error { _, err := tx.Append(filled[hub.Message](&n)); return err })
}

func appendMail(f *fixture) {
	n := 0
	live, stale, kept, hist := filled[hub.Message](&n), filled[hub.Message](&n), filled[hub.Message](&n), filled[hub.Message](&n)
	live.Stale, live.Payload, kept.Stale, hist.Stale = false, nil, false, false
	live.History, stale.History, kept.History = false, false, false
	live.To, stale.To, kept.To, hist.To = "run:a", "run:a", "run:a", "run:a"
	f.update(func(tx store.Tx) error {
		if err := tx.PutMailbox(store.Mailbox{Box: "run:a"}); err != nil {
			return err
		}
		var err error
		if live.Seq, err = tx.Append(live); err == nil {
			stale.Seq, err = tx.Append(stale)
		}
		if err == nil {
			hist.Seq, err = tx.Append(hist)
		}
		kept.Seq = 0
		return first(err, tx.Record(kept))
	})
	equal(f, []int64{1, 2, 3}, []int64{live.Seq, stale.Seq, hist.Seq})
	f.view(func(rx store.Rx) error {
		return first(same(f, live)(rx.Message(live.ID)), same(f, stale)(rx.Message(stale.ID)), same(f, hist)(rx.Message(hist.ID)), same(f, kept)(rx.Message(kept.ID)),
			same(f, true)(rx.HasMessage(kept.ID)), same(f, false)(rx.HasMessage("other")),
			same(f, store.Mailbox{Box: "run:a", Seq: 3, Live: 1})(rx.Mailbox("run:a")),
			same(f, []hub.Message{live})(rx.Deliverable("run:a", 0, 10, 1<<20)))
	})
	f.refused(hub.CodeInternal, func(tx store.Tx) error { _, err := tx.Append(live); return err })
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.Record(kept) })
	f.refused(hub.CodeMessageNotFound, func(tx store.Tx) error { _, err := tx.Message("other"); return err })
	f.view(func(rx store.Rx) error {
		return same(f, store.Mailbox{Box: "run:a", Seq: 3, Live: 1})(rx.Mailbox("run:a"))
	})
}

// box fills a mailbox with messages of 100 bytes; even ones are history.
func (f *fixture) box(b hub.Box, count int) (ms []hub.Message) {
	f.update(func(tx store.Tx) error {
		ms = nil
		if err := tx.PutMailbox(store.Mailbox{Box: b}); err != nil {
			return err
		}
		for i := 1; i <= count; i++ {
			m := hub.Message{ID: hub.NewMessageID(), To: b, From: "dispatch:d", Type: hub.TypeStatus,
				Body: strings.Repeat("x", 90), Subject: "12345", Payload: []byte("12345"), Stale: i%2 == 0}
			if i%3 == 0 {
				m.Type = hub.TypeQuestion
			}
			seq, err := tx.Append(m)
			if err != nil {
				return err
			}
			m.Seq = seq
			ms = append(ms, m)
		}
		return nil
	})
	return ms
}

func batches(f *fixture) {
	ms := f.box("run:a", 9) // live: 1 3 5 7 9, questions: 3 6 9
	f.box("run:b", 3)
	live := []hub.Message{ms[0], ms[2], ms[4], ms[6], ms[8]}
	f.view(func(rx store.Rx) error {
		return first(
			same(f, live)(rx.Deliverable("run:a", 0, 50, 1<<20)),
			same(f, live[:2])(rx.Deliverable("run:a", 0, 2, 1<<20)),
			same(f, live[:3])(rx.Deliverable("run:a", 0, 50, 399)),
			same(f, live[:3])(rx.Deliverable("run:a", 0, 50, 300)),
			same(f, live[:1])(rx.Deliverable("run:a", 0, 50, 1)),
			same(f, live[2:])(rx.Deliverable("run:a", 3, 50, 1<<20)),
			same(f, []hub.Message(nil))(rx.Deliverable("run:a", 9, 50, 1<<20)),
			same(f, []hub.Message(nil))(rx.Deliverable("run:none", 0, 50, 1<<20)),
			same(f, live[1:3])(rx.Between("run:a", 2, 5)),
			same(f, true)(rx.Wakes("run:a", 0, nil)),
			same(f, false)(rx.Wakes("run:a", 9, nil)),
			same(f, true)(rx.Wakes("run:a", 8, []hub.MessageType{hub.TypeAnswer, hub.TypeQuestion})),
			same(f, false)(rx.Wakes("run:a", 0, []hub.MessageType{hub.TypeAnswer})),
			same(f, false)(rx.Wakes("run:none", 0, nil)),
		)
	})
}

func history(f *fixture) {
	ms := f.box("run:a", 9)
	f.update(func(tx store.Tx) error {
		return tx.SaveMailbox(store.Mailbox{Box: "run:a", Seq: 9, Live: 5, Done: 2, AckedSeq: 3})
	})
	question := []hub.MessageType{hub.TypeQuestion}
	f.view(func(rx store.Rx) error {
		return first(
			same(f, ms)(historyPage(rx, "run:a", store.HistoryFilter{Limit: 50})),
			same(f, ms[4:6])(historyPage(rx, "run:a", store.HistoryFilter{After: 4, Limit: 2})),
			same(f, []hub.Message{ms[2], ms[5], ms[8]})(historyPage(rx, "run:a", store.HistoryFilter{Limit: 50, Types: question})),
			same(f, []hub.Message{ms[4], ms[6], ms[8]})(historyPage(rx, "run:a", store.HistoryFilter{Limit: 50, Unread: true})),
			same(f, ms[8:])(historyPage(rx, "run:a", store.HistoryFilter{After: 1, Limit: 50, Unread: true, Types: question})),
			same(f, []hub.Message(nil))(historyPage(rx, "run:none", store.HistoryFilter{Limit: 50})),
		)
	})
}

func verdicts(f *fixture) {
	n := 0
	m := filled[hub.Message](&n)
	f.update(func(tx store.Tx) error { return tx.Record(m) })
	check := func(id hub.MessageID, v hub.Verdict, reason string) {
		f.Helper()
		f.view(func(rx store.Rx) error {
			gotV, gotR, err := rx.VerdictOf(id)
			equal(f, []string{string(v), reason}, []string{string(gotV), gotR})
			return err
		})
	}
	check(m.ID, hub.VerdictNone, "")
	check("other", hub.VerdictNone, "")
	f.update(func(tx store.Tx) error { return tx.SetVerdict(m.ID, hub.VerdictStale, "stopped") })
	check(m.ID, hub.VerdictStale, "stopped")
	f.refused(hub.CodeMessageNotFound, func(tx store.Tx) error { return tx.SetVerdict("other", hub.VerdictStale, "") })
	f.box("run:a", 4)
	f.view(func(rx store.Rx) error {
		items, bytes, err := rx.StaleKept("d")
		equal(f, []int{2, 200}, []int{items, bytes})
		none, size, err2 := rx.StaleKept("other")
		equal(f, []int{0, 0}, []int{none, size})
		return first(err, err2)
	})
}

func deliveries(f *fixture) {
	n := 0
	d := filled[hub.Delivery](&n)
	f.update(func(tx store.Tx) error { return tx.PutDelivery(d) })
	changed := filled[hub.Delivery](&n)
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Delivery(changed.ID)
		return first(found(f, d)(rx.Delivery(d.ID)), f.absent("a Delivery", ok, err))
	})
	f.refused(hub.CodeNotFound, func(tx store.Tx) error { return tx.SaveDelivery(changed) })
	changed.ID = d.ID
	f.update(func(tx store.Tx) error { return tx.SaveDelivery(changed) })
	f.view(func(rx store.Rx) error { return found(f, changed)(rx.Delivery(d.ID)) })
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutDelivery(d) })
}

func questions(f *fixture) {
	n := 0
	a, b, c := filled[hub.Question](&n), filled[hub.Question](&n), filled[hub.Question](&n)
	a.State, b.State, c.State = hub.QuestionPending, hub.QuestionPending, hub.QuestionPending
	b.Dispatch = a.Dispatch
	f.update(func(tx store.Tx) error { return first(tx.PutQuestion(a), tx.PutQuestion(b), tx.PutQuestion(c)) })
	f.view(func(rx store.Rx) error {
		return first(same(f, a)(rx.Question(a.Message)), same(f, []hub.Question{a, b})(rx.PendingQuestions(a.Dispatch)))
	})
	a.State, a.Answer, a.AnswerID = hub.QuestionAnswered, "yes", "msg"
	f.update(func(tx store.Tx) error { return tx.SaveQuestion(a) })
	f.view(func(rx store.Rx) error {
		return first(same(f, a)(rx.Question(a.Message)), same(f, []hub.Question{b})(rx.PendingQuestions(a.Dispatch)))
	})
	for _, want := range []struct {
		f  store.QuestionFilter
		qs []hub.Question
	}{
		{store.QuestionFilter{}, []hub.Question{c, b, a}},
		{store.QuestionFilter{Run: a.Run}, []hub.Question{a}},
		{store.QuestionFilter{State: hub.QuestionPending}, []hub.Question{c, b}},
		{store.QuestionFilter{Run: a.Run, State: hub.QuestionPending}, nil},
	} {
		f.view(func(rx store.Rx) error {
			equal(f, want.qs, pages(f, 0, func(p store.Page) ([]hub.Question, int64, error) { return rx.QuestionList(want.f, p) }))
			return nil
		})
	}
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutQuestion(a) })
	f.refused(hub.CodeQuestionNotFound, func(tx store.Tx) error { _, err := tx.Question("other"); return err })
	f.refused(hub.CodeQuestionNotFound, func(tx store.Tx) error { return tx.SaveQuestion(filled[hub.Question](&n)) })
}

// historyPage is a page without its end.
func historyPage(rx store.MailReader, box hub.Box, f store.HistoryFilter) ([]hub.Message, error) {
	ms, next, err := rx.History(box, f)
	if err == nil && next != 0 && (len(ms) != f.Limit || next != ms[len(ms)-1].Seq) {
		err = fmt.Errorf("%d messages of %d, and the next page begins behind %d", len(ms), f.Limit, next)
	}
	return ms, err
}
