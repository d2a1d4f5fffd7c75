package wave

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Kinds of edges of a Graph.
const (
	EdgeDependency = "dependency"
	EdgeOrdering   = "ordering"
)

// Graph is the stored plan of a wave with the present status of its tasks; edges run
// from the task that comes first.
func (s *Service) Graph(ctx context.Context, id hub.WaveID) (Graph, error) {
	var l look
	var orders []hub.WaveOrder
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if l, err = lookAt(rx, id); err != nil {
			return err
		}
		orders, err = rx.WaveOrders(id)
		return err
	})
	if err != nil {
		return Graph{}, err
	}
	xs := make([]hub.WaveTask, len(l.rows))
	g := Graph{Wave: id, Status: make(map[string]hub.WaveStatus, len(l.rows))}
	for i, r := range l.rows {
		xs[i] = r.WaveTask
		g.Status[r.Entry.Token] = l.standing(i).status
	}
	g.Levels, g.Serialized, g.Edges = planLevels(xs), serializedBy(xs, orders), graphEdges(xs, orders)
	return g, nil
}

// ordered reads the orders of a wave, and its tasks if there are any.
func ordered(rx store.WaveReader, id hub.WaveID) ([]hub.WaveTask, []hub.WaveOrder, error) {
	orders, err := rx.WaveOrders(id)
	if err != nil || len(orders) == 0 {
		return nil, nil, err
	}
	xs, err := rx.WaveTasks(id)
	return xs, orders, err
}

// serializedBy are the decisions that orders stand for.
func serializedBy(xs []hub.WaveTask, orders []hub.WaveOrder) []hub.Serialized {
	out := make([]hub.Serialized, len(orders))
	for i, o := range orders {
		first, second := xs[o.First], xs[o.Second]
		out[i] = hub.Serialized{
			Path: o.Path, First: first.Entry.Token, Second: second.Entry.Token, MovedTo: strconv.Itoa(second.Level) + hub.SubLabel(second.Sub),
		}
	}
	return out
}

// planLevels are the levels and sub-waves in their order, with their tasks as
// declared.
func planLevels(xs []hub.WaveTask) []hub.PlanLevel {
	out := []hub.PlanLevel{}
	at := map[hub.Place]int{}
	for _, p := range placesOf(xs) {
		at[p] = len(out)
		out = append(out, hub.PlanLevel{Wave: p.Level, Sub: hub.SubLabel(p.Sub)})
	}
	for _, x := range xs {
		l := &out[at[placeOf(x)]]
		l.Tasks = append(l.Tasks, x.Entry.Token)
	}
	return out
}

func placeOf(x hub.WaveTask) hub.Place { return hub.Place{Level: x.Level, Sub: x.Sub} }

// placesOf are the places that tasks have, in their order.
func placesOf(xs []hub.WaveTask) []hub.Place {
	var out []hub.Place
	seen := map[hub.Place]bool{}
	for _, x := range xs {
		if p := placeOf(x); !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	slices.SortFunc(out, byPlace)
	return out
}

func byPlace(a, b hub.Place) int {
	return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Sub, b.Sub))
}

func graphEdges(xs []hub.WaveTask, orders []hub.WaveOrder) []Edge {
	out := []Edge{}
	for _, x := range xs {
		for _, d := range x.Entry.Dependencies {
			out = append(out, Edge{From: d, To: x.Entry.Token, Kind: EdgeDependency})
		}
	}
	for _, o := range orders {
		out = append(out, Edge{From: xs[o.First].Entry.Token, To: xs[o.Second].Entry.Token, Kind: EdgeOrdering})
	}
	return out
}
