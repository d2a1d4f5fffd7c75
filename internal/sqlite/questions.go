package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	questionCols     = "message, run, dispatch, sum, state, answer, answer_id"
	questionQuery    = `SELECT ` + questionCols + ` FROM questions WHERE message = ?`
	pendingQuestions = `SELECT ` + questionCols + ` FROM questions INDEXED BY questions_pending
		WHERE dispatch = ? AND state = 'pending' ORDER BY rid`
)

// questionPage is the query of a filter, up to the value of LIMIT.
func questionPage(f store.QuestionFilter, before int64) (string, []any) {
	var where string
	var args []any
	if f.Run != "" {
		where, args = where+"run = ? AND ", append(args, f.Run)
	}
	if f.State != "" {
		where, args = where+"state = ? AND ", append(args, f.State)
	}
	return `SELECT ` + questionCols + `, rid FROM questions WHERE ` + where + `rid < ? ORDER BY rid DESC LIMIT ?`, append(args, before)
}

// QuestionList implements store.QuestionReader.
func (q querier) QuestionList(f store.QuestionFilter, p store.Page) ([]hub.Question, int64, error) {
	query, args := questionPage(f, before(p.Before))
	xs, next, err := paged(q, scanQuestion, p.Limit, query, args...)
	return xs, next, wrap(err, "listing questions")
}

var (
	insertQuestion = insertInto("questions", questionCols)
	updateQuestion = updateSet("questions", questionCols, 1)
)

func scanQuestion(s scanner, x *hub.Question) error {
	return s.Scan(&x.Message, &x.Run, &x.Dispatch, &x.Sum, &x.State, &x.Answer, &x.AnswerID)
}

func questionArgs(x hub.Question) []any {
	return []any{x.Message, x.Run, x.Dispatch, x.Sum, x.State, x.Answer, x.AnswerID}
}

func noQuestion(id hub.MessageID) error {
	return hub.Errorf(hub.CodeQuestionNotFound, "there is no question %s", id)
}

// Question implements store.QuestionReader.
func (q querier) Question(id hub.MessageID) (hub.Question, error) {
	x, err := must(q, scanQuestion, noQuestion(id), questionQuery, id)
	return x, wrap(err, "reading question %s", id)
}

// PendingQuestions implements store.QuestionReader, the oldest first.
func (q querier) PendingQuestions(d hub.DispatchID) ([]hub.Question, error) {
	xs, err := all(q, scanQuestion, pendingQuestions, d)
	return xs, wrap(err, "reading the questions of %s", d)
}

// PutQuestion implements store.Questions.
func (tx *Tx) PutQuestion(x hub.Question) error {
	_, err := tx.exec(insertQuestion, questionArgs(x)...)
	return wrap(err, "putting question %s", x.Message)
}

// SaveQuestion implements store.Questions.
func (tx *Tx) SaveQuestion(x hub.Question) error {
	return wrap(tx.save(noQuestion(x.Message), updateQuestion, keysLast(questionArgs(x), 1)...), "saving question %s", x.Message)
}
