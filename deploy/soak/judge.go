//go:build unix

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/openapi/api"
)

// row is one line of the table: names and numbers, parted by slashes.
type row struct {
	names   string
	numbers []int
}

// judgement is what the book, in which nobody writes any more, and the hub's facts
// come to together. It is pure: equal observations give equal judgements.
type judgement struct {
	*book
	facts
	ids   []string          // of all lives, sorted
	came  map[string][]note // by sender: what its Run took
	dones map[string][]note // by Dispatch: the worker_done mails that came

	rows  []row
	found []string // what is wrong
}

func judge(b *book, f facts) *judgement {
	j := &judgement{book: b, facts: f, ids: slices.Sorted(maps.Keys(b.lives)), came: map[string][]note{}, dones: map[string][]note{}}
	j.sort()
	j.row("hub kills / polite stops / coordinator crashes / rebinds / live at once at most", b.kills, b.stops, b.crashes, b.rebinds, b.mostLive)
	j.judgeStarts()
	j.judgeMessages()
	j.judgeQuestions()
	j.judgeGuidance()
	j.judgeEnds()
	j.judgeReports()
	j.judgeRest()
	return j
}

func (j *judgement) row(names string, numbers ...int) { j.rows = append(j.rows, row{names, numbers}) }

func (j *judgement) wrongf(format string, args ...any) {
	j.found = append(j.found, fmt.Sprintf(format, args...))
}

// sort orders what the Runs took by sender and, for reports, by Dispatch.
func (j *judgement) sort() {
	j.found = append(j.found, j.book.wrong...)
	for _, in := range j.inboxes {
		j.found = append(j.found, in.wrong...)
		if in.delivery != "" {
			j.wrongf("%s: %s was not acknowledged in the end", in.box, in.delivery)
		}
		for _, n := range in.taken {
			j.came[n.from] = append(j.came[n.from], n)
			if n.kind == kindDone {
				j.dones[n.done.dispatch] = append(j.dones[n.done.dispatch], n)
			}
		}
	}
	for _, id := range j.ids {
		j.found = append(j.found, j.lives[id].mail.wrong...)
	}
}

// judgeStarts holds that each requested start made one Dispatch, and each
// Dispatch had its effect once, or was proven to have had none.
func (j *judgement) judgeStarts() {
	asked, ready, twice, executed := map[string]*start{}, 0, 0, 0
	for _, s := range j.starts {
		switch other := asked[s.dispatch]; {
		case s.dispatch == "":
			j.wrongf("start %s has no answer", s.request)
			continue
		case other != nil:
			j.wrongf("starts %s and %s have one Dispatch, %s", other.request, s.request, s.dispatch)
		}
		asked[s.dispatch] = s
		want := 0
		if s.state == string(api.StartReceiptStateReady) {
			want = 1
			ready++
		}
		n := j.effects[s.dispatch]
		executed += min(n, 1)
		twice += max(0, n-1)
		if n != want {
			j.wrongf("effect: %s, whose start is %s, executed %d times", s.dispatch, s.state, n)
		}
	}
	j.row("starts requested / Dispatches", len(j.starts), len(j.dispatches))
	j.row("starts ready / effects executed / executed twice", ready, executed, twice)
	j.sameSet(asked)
}

// sameSet holds that the hub has the Dispatches that were asked for, and that
// nothing ran beside them.
func (j *judgement) sameSet(asked map[string]*start) {
	for _, id := range slices.Sorted(maps.Keys(j.dispatches)) {
		if asked[id] == nil {
			j.wrongf("%s was never asked for", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(asked)) {
		if _, ok := j.dispatches[id]; !ok {
			j.wrongf("%s was answered to %s and is not known to the hub", id, asked[id].request)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.effects)) {
		if asked[id] == nil {
			j.wrongf("effect: %s, which no start was answered with, executed %d times", id, j.effects[id])
		}
	}
}

// list files a comparison among what is wrong.
func (j *judgement) list(word, who string, ns []note) int {
	for _, n := range ns {
		j.wrongf("%s: %s %s of %s", word, n.kind, n.id, who)
	}
	return len(ns)
}

// judgeMessages holds that all that workers were told is accepted came to their
// Run once, as it was, in their order.
func (j *judgement) judgeMessages() {
	var sent, came, lost, doubled, reordered int
	for _, id := range j.ids {
		from := "dispatch:" + id
		c := compare(j.lives[id].sent, j.came[from])
		lost += j.list("lost", from, c.missing)
		doubled += j.list("duplicated", from, c.doubled)
		reordered += j.list("reordered", from, c.reordered)
		j.list("changed", from, c.changed)
		j.list("never accepted", from, c.foreign)
		sent += count(j.lives[id].sent, kindStatus)
		came += count(j.came[from], kindStatus)
	}
	for _, from := range slices.Sorted(maps.Keys(j.came)) {
		if id, worker := strings.CutPrefix(from, "dispatch:"); from != "hub" && (!worker || j.lives[id] == nil) {
			j.list("of an unknown sender", from, j.came[from])
		}
	}
	j.row("status messages accepted / delivered", sent, came)
	j.row("messages of workers lost / duplicated / reordered", lost, doubled, reordered)
}
