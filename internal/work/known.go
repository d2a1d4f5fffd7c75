package work

import (
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// Known is what can be said of a Dispatch's worker from memory, at no cost: what
// its owner said last. False for one that is final, or of this hub and not live.
func (s *Service) Known(d hub.Dispatch) (hub.Observation, bool) {
	switch {
	case d.State.Final():
		return hub.Observation{}, false
	case !d.Local():
		return s.remembered(d), true
	}
	p, ok := s.board.wordOn(attempt{"", d.ID})
	now := hub.MicrosOf(time.Now())
	obs := saying(hub.Observation{Link: "local", Attachment: "present"}, p, now)
	obs.Process, obs.ObservedAt = p.Process, now
	return obs, ok
}

// remembered is what the owner of a peer's Dispatch said last. While the link is
// up its word holds; else its process is unverifiable, as of when it was last
// vouched for.
func (s *Service) remembered(d hub.Dispatch) hub.Observation {
	peer := d.Server.PeerID
	linkAt, x, now := s.hearsay.about(peer, d.ID)
	obs := hub.Observation{Link: "down", LinkAt: linkAt, Process: hub.Unverifiable, Attachment: "unknown", WaitingFor: hub.WaitsForUnknown}
	up := s.LinkUp(peer)
	if up {
		obs.Link = "up"
	}
	if x.at == 0 {
		return obs
	}
	obs = saying(obs, x.Presence, x.at)
	if up && now {
		obs.Process, obs.Attachment = x.Process, "present"
	}
	return obs
}

// saying adds an owner's word to an observation, but for whether it holds now.
func saying(obs hub.Observation, p hub.Presence, at hub.Micros) hub.Observation {
	obs.LastProcess, obs.ProcessAt, obs.ObservedAt = p.Process, at, at
	obs.LastOutputAt, obs.LastReportAt, obs.WaitingFor = p.LastOutputAt, p.LastReportAt, p.WaitingFor
	obs.Lost, obs.Usage = p.Lost, p.Usage
	return obs
}

// vouched adds to what is observed of this hub's own worker what its silence says.
func (s *Service) vouched(a hub.Attachment, obs hub.Observation) hub.Observation {
	obs.ProcessAt, obs.LastProcess = obs.ObservedAt, obs.Process
	obs.Lost = s.board.lost(attempt{a.Home, a.Dispatch})
	return obs
}
