package daemon

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay"
)

// presences fits the words on live workers to the relay. It is made before the
// service that has them, and used after it.
type presences struct{ x *hubParts }

func (p presences) Tell(peer hub.PeerID) relay.Telling { return p.x.work.Tell(peer) }

func (p presences) Hear(peer hub.PeerID, words []hub.Presence, first bool) {
	p.x.work.Hear(peer, words, first)
}

func (p presences) Vouched(peer hub.PeerID) { p.x.work.Vouched(peer) }
