package storetest

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func outputs(f *fixture) {
	a := hub.ArchivedOutput{Source: "terminal", Identity: "i", Text: hub.TerminalText{Text: "end\n", Truncated: true}}
	b := hub.ArchivedOutput{Source: "transcript", Identity: "j", Provider: "codex", Messages: []hub.TranscriptMessage{{ID: "1", Role: "user",
		Blocks: []hub.TranscriptBlock{{Kind: hub.BlockText, Text: "go"}}}}}
	f.update(func(tx store.Tx) error {
		return first(tx.PutArchivedOutput("", "d", a), tx.PutArchivedOutput("p", "d", a))
	})
	f.update(func(tx store.Tx) error { return tx.PutArchivedOutput("p", "d", b) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.ArchivedOutput("", "other")
		return first(found(f, a)(rx.ArchivedOutput("", "d")), found(f, b)(rx.ArchivedOutput("p", "d")), f.absent("an output of another Dispatch", ok, err))
	})
}

func pools(f *fixture) {
	a := hub.AgentPool{Agent: "a", Class: hub.ErrorRateLimited, Until: 7, Times: 1}
	b := hub.AgentPool{Agent: "b", Class: hub.ErrorQuotaExhausted, Until: 8, Times: 2}
	f.update(func(tx store.Tx) error { return first(tx.SaveAgentPool(b), tx.SaveAgentPool(a)) })
	f.view(func(rx store.Rx) error {
		return first(same(f, []hub.AgentPool{a, b})(rx.AgentPools()), same(f, a)(rx.AgentPool("a")), same(f, hub.AgentPool{Agent: "c"})(rx.AgentPool("c")))
	})
	a.Times, a.Until = 3, 9
	f.update(func(tx store.Tx) error {
		return first(tx.SaveAgentPool(a), tx.DropAgentPool("b"), tx.DropAgentPool("b"))
	})
	f.view(func(rx store.Rx) error { return same(f, []hub.AgentPool{a})(rx.AgentPools()) })
}
