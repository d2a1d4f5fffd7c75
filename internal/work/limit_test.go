package work_test

import (
	"errors"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// TestLocalStartsHaveLimits: a start over the hub's limit, or over its agent's,
// is refused before any effect.
func TestLocalStartsHaveLimits(t *testing.T) {
	for name, limit := range map[string]func(*work.Service){
		"of all":   func(s *work.Service) { s.Workers = 1 },
		"of agent": func(s *work.Service) { s.PerAgent = map[string]int{"sh": 1} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			s := m.hubOf(m.store)
			limit(s)
			start := func(agent string) error {
				in := startInput(m.newTask())
				in.Spec.Name, in.Spec.Agent = "w"+string(hub.NewRequestID())[20:], agent
				_, err := s.Start(t.Context(), startRequest(t, "", in), in)
				return err
			}
			if err := start("sh"); err != nil {
				t.Fatal(err)
			}
			made := m.trees.made
			if err := start("sh"); !hub.IsCode(err, hub.CodeWorkerLimit) || m.terms.launches != 1 || m.trees.made != made {
				t.Errorf("over the limit: %v, %d launches", err, m.terms.launches)
			}
			err := start("other")
			if over := hub.IsCode(err, hub.CodeWorkerLimit); over != (name == "of all") {
				t.Errorf("another agent: %v", err)
			}
		})
	}
}

// TestAGrantLimitsItsPeer: a home's starts are bounded by its grant, whatever
// room this hub has; another home is not concerned.
func TestAGrantLimitsItsPeer(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	home := func(name string) hub.Peer {
		p := hub.Peer{
			ID: hub.NewPeerID(), Name: name, Lineage: "hub_" + name, Fingerprint: name, Role: hub.RoleHome, State: hub.PeerActive,
			Grants: hub.Grants{MaxWorkers: 1, Repos: []string{"/demo"}, Verbs: []string{hub.GrantStart}},
		}
		if err := m.store.Update(t.Context(), store.New, func(tx store.Tx) error { return tx.PutPeer(p) }); err != nil {
			t.Fatal(err)
		}
		return p
	}
	start := func(p hub.Peer) error {
		in := hub.PeerStart{
			Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Prompt: "true", StoreID: "store_1", Epoch: 1,
			Contract: hub.ContractFederation, Spec: startInput("").Spec,
		}
		in.Spec.Name = "w" + string(in.Dispatch)[20:]
		r, err := receipt.New(hub.Principal{Kind: hub.PeerKey, ID: p.Lineage, Credential: string(p.ID)}, "", "peer.start", in)
		if err != nil {
			t.Fatal(err)
		}
		_, probed := s.ProbeFor(t.Context(), p, in)
		_, err = s.StartFor(t.Context(), r, p, in)
		if hub.CodeOf(probed) != hub.CodeOf(err) {
			t.Errorf("the probe says %v, the start %v", probed, err)
		}
		return err
	}
	a, b := home("a"), home("b")
	if err := errors.Join(start(a), start(b)); err != nil {
		t.Fatal(err)
	}
	if err := start(a); !hub.IsCode(err, hub.CodeWorkerLimit) {
		t.Errorf("over the grant: %v", err)
	}
}
