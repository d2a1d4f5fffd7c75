//go:build unix

package main

import (
	"maps"
	"slices"

	"github.com/wavehub/wavehub/openapi/api"
)

// judgeQuestions holds that each question is answered as it was replied to, or
// closed without a reply, and that nothing else is known as a question.
func (j *judgement) judgeQuestions() {
	var all, answered, closed int
	known := map[string]bool{}
	for _, id := range j.ids {
		l := j.lives[id]
		for _, a := range l.asked {
			known[a.question] = true
			all++
			switch q, ok := j.questions[a.question]; {
			case !ok:
				j.wrongf("question %s of %s is not known to the hub", a.question, id)
			case q.State == api.QuestionStateAnswered:
				answered++
				j.sameAnswer(l, a, orNone(q.Answer))
			case q.State == api.QuestionStateClosed:
				closed++
				j.sameAnswer(l, a, "")
			default:
				j.wrongf("question %s of %s is %s in the end", a.question, id, q.State)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.questions)) {
		if !known[id] {
			j.wrongf("question %s was never accepted from %s", id, j.questions[id].DispatchId)
		}
	}
	j.row("questions asked / answered / closed", all, answered, closed)
}

// sameAnswer holds that the hub's answer, "" for none, is the coordinator's, and
// the worker's if it got one.
func (j *judgement) sameAnswer(l *life, a asked, answer string) {
	if replied := l.replies[a.question]; replied != answer {
		j.wrongf("question %s of %s has the answer %q, replied was %q", a.question, l.dispatch, answer, replied)
	}
	if a.answer != "" && a.answer != answer {
		j.wrongf("question %s of %s has the answer %q, its worker got %q", a.question, l.dispatch, answer, a.answer)
	}
}

// undelivered is the hub's word for mail that no check will bring.
const undelivered = "undelivered"

// judgeGuidance holds that each worker received what was accepted for it, in
// order, up to its end; the rest is called undelivered.
func (j *judgement) judgeGuidance() {
	var sent, came, left, lost, doubled, reordered int
	for _, id := range j.ids {
		l, box := j.lives[id], "dispatch:"+id
		c := compare(l.given, l.mail.received())
		for _, n := range c.missing {
			at := j.whereabouts[n.id]
			if at.delivery != undelivered {
				lost += j.list("lost, "+at.delivery, box, []note{n})
				continue
			}
			left += count([]note{n}, kindGuidance)
			if settled := orNone(j.dispatches[id].SettledAt); at.at > settled { // both are of one width
				j.wrongf("%s %s was accepted at %s, and %s had ended at %s", n.kind, n.id, at.at, id, settled)
			}
		}
		doubled += j.list("duplicated", box, c.doubled)
		reordered += j.list("reordered", box, c.reordered)
		j.list("changed", box, c.changed)
		j.list("never accepted", box, c.foreign)
		sent += count(l.given, kindGuidance)
		came += count(l.mail.received(), kindGuidance)
	}
	j.row("guidance accepted / received / undelivered by an ended worker", sent, came, left)
	j.row("mail for workers lost / duplicated / reordered", lost, doubled, reordered)
}
