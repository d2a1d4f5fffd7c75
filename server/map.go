package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

const microsLayout = "2006-01-02T15:04:05.000000Z"

// at is a time that is always there.
func at(m hub.Micros) string { return m.Time().Format(microsLayout) }

// maybeAt is a time, nil for none.
func maybeAt(m hub.Micros) *string {
	if m == 0 {
		return nil
	}
	s := at(m)
	return &s
}

// null is s, nil for "".
func null[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}

// each maps a slice; the result is never nil, so that JSON has [].
func each[From, To any](in []From, f func(From) To) []To {
	out := make([]To, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

func texts[T ~string](in []T) []string { return each(in, func(s T) string { return string(s) }) }

func commands(in [][]string) api.Commands {
	return each(in, func(argv []string) []string { return texts(argv) })
}

func mutationOf(m hub.Mutation) api.Mutation {
	return api.Mutation{RequestId: string(m.RequestID), Replayed: m.Replayed}
}

func serverOf(s hub.Server) api.Server {
	return api.Server{PeerId: null(s.PeerID), Name: s.Name}
}
