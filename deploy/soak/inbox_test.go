//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func notes(ids string) (out []note) {
	for _, id := range strings.Fields(ids) {
		out = append(out, note{id: id})
	}
	return out
}

// step is one thing that happens at a mailbox.
type step func(*inbox)

func got(delivery, ids string) step { return func(b *inbox) { b.got(delivery, notes(ids)) } }

var (
	ack     step = (*inbox).ack
	acked   step = (*inbox).acked
	rebound step = (*inbox).rebound
)

func TestInbox_WhatMayFollowWhat(t *testing.T) {
	for _, c := range []struct {
		what  string
		steps []step
		taken string // what is taken in the end
		wrong string // how the fault is told, "" for none
	}{
		{"one after another", []step{got("1", "a b"), ack, acked, got("2", "c"), ack, acked, got("", "")}, "a b c", ""},
		{"the same again after a crash", []step{got("1", "a b"), got("1", "a b"), ack, acked}, "a b", ""},
		{"a lost ack that was not taken", []step{got("1", "a b"), ack, got("1", "a b"), ack, acked}, "a b", ""},
		{"a lost ack that was taken", []step{got("1", "a b"), ack, got("2", "c"), ack, acked}, "a b c", ""},
		{"a lost ack that was taken, and nothing after it", []step{got("1", "a b"), ack, got("", "")}, "a b", ""},
		{"a lost ack that was taken late", []step{got("1", "a"), ack, got("1", "a"), got("2", "b")}, "a", ""},
		{"all again and more for a new consumer", []step{got("1", "a b"), rebound, got("2", "a b c"), ack, acked}, "a b c", ""},
		{"a lost ack, then a new consumer", []step{got("1", "a b"), ack, rebound, got("2", "c"), ack, acked}, "a b c", ""},
		{"a new consumer of an empty mailbox", []step{rebound, got("1", "a"), ack, acked}, "a", ""},

		{"another batch before the ack", []step{got("1", "a b"), got("2", "c")}, "", "2 with 1 messages followed 1"},
		{"nothing before the ack", []step{got("1", "a b"), got("", "")}, "", "with 0 messages followed 1"},
		{"the same id, fewer messages", []step{got("1", "a b"), got("1", "a")}, "", "1 came again with other messages"},
		{"the same id, another order", []step{got("1", "a b"), got("1", "b a")}, "", "1 came again with other messages"},
		{"the same messages under another id", []step{got("1", "a b"), got("2", "a b")}, "", "2 with 2 messages followed 1"},
		{"half of them taken", []step{got("1", "a b"), ack, got("2", "b c")}, "", "2 with 2 messages followed 1"},
		{"a new consumer misses the oldest", []step{got("1", "a b"), rebound, got("2", "b c")}, "", "2 with 2 messages followed 1"},
		{"a new consumer finds nothing", []step{got("1", "a b"), rebound, got("", "")}, "", "with 0 messages followed 1"},
		{"a new consumer gets the old id", []step{got("1", "a b"), rebound, got("1", "a b")}, "", "1 came to a new consumer under the same id"},
	} {
		b := &inbox{box: "run:r"}
		for _, s := range c.steps {
			s(b)
		}
		if !slices.Equal(b.taken, notes(c.taken)) {
			t.Errorf("%s: taken are %v", c.what, b.taken)
		}
		if text := fmt.Sprint(b.wrong); (c.wrong == "") != (len(b.wrong) == 0) || !strings.Contains(text, c.wrong) {
			t.Errorf("%s: wrong is %s, want %q", c.what, text, c.wrong)
		}
	}
}
