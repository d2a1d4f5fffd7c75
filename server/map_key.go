package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	pairs "github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/openapi/api"
)

func peerPing(p pairs.Ping) api.PeerPing {
	return api.PeerPing{
		PeerId: string(p.Peer.ID), Name: p.Peer.Name, Ok: p.Err() == nil, Address: null(p.Address),
		DurationUs: p.Took.Microseconds(), Stages: each(p.Stages, pingStage),
	}
}

func pingStage(s pairs.PingStage) api.PeerPingStage {
	out := api.PeerPingStage{
		Stage: api.PeerPingStageStage(s.Stage), State: api.PeerPingStageState(s.State), DurationUs: s.Took.Microseconds(),
	}
	if e := s.Err; e != nil {
		out.Code, out.Error, out.Hint = string(e.Code), e.Error(), e.Hint
	}
	return out
}

func keyRotation(r pairs.RotateResult) api.KeyRotation {
	return api.KeyRotation{
		HubId: r.HubID, Fingerprint: r.Fingerprint, FormerFingerprint: r.Old, Rotated: r.Rotated,
		Unaware:   each(r.Unaware, func(p hub.Peer) api.UnawarePeer { return api.UnawarePeer{PeerId: string(p.ID), Name: p.Name} }),
		Forgotten: texts(r.Forgotten), Mutation: mutationOf(r.Mutation),
	}
}
