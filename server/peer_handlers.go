package server

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/peerapi"
)

// maxPeerAnswer bounds an answer to a peer, in bytes.
const maxPeerAnswer = 1 << 20

// peerHandlers implements the generated interface of the peer mux. The bodies
// are the values of package hub; fields that this version does not know are
// passed over, for the contract only ever adds.
type peerHandlers struct{ *Server }

var _ peerapi.ServerInterface = peerHandlers{}

// PeerHello says what this hub is.
func (s peerHandlers) PeerHello(w http.ResponseWriter, r *http.Request) {
	h, err := s.cfg.PeerHello(r)
	s.reply(w, r, http.StatusOK, h, err)
}

// PeerRotate takes the new key of the hub that calls. It needs no receipt: what
// it changes is named by the proofs, and the same again changes nothing. The key that
// asks is cut off once the record has moved, and has its answer first.
func (s peerHandlers) PeerRotate(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	in, err := decode[hub.Rotation](c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.peerConns.spare(r)
	out, err := s.cfg.Peers.FollowRotation(r, c.peer, in)
	s.reply(w, r, http.StatusOK, out, err)
}

// PeerPair hands over to the pairing protocol.
func (s peerHandlers) PeerPair(w http.ResponseWriter, r *http.Request) {
	s.cfg.PeerPair.ServeHTTP(w, r)
}

// PeerRelay hands over to the relay, which homes open.
func (s peerHandlers) PeerRelay(w http.ResponseWriter, r *http.Request) {
	if p := callOf(r).peer; !p.Role.CanBe(hub.RoleHome) {
		s.fail(w, r, hub.Errorf(hub.CodeOutOfScope, "this peer is not paired as a home"))
		return
	}
	s.cfg.PeerRelay.ServeHTTP(w, r)
}

// PeerPark hands over to the lot of parked streams.
func (s peerHandlers) PeerPark(w http.ResponseWriter, r *http.Request) {
	s.cfg.PeerPark.ServeHTTP(w, r)
}

// PeerProbe validates a start without any effect.
func (s peerHandlers) PeerProbe(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	in, err := decode[hub.PeerStart](c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out, err := s.cfg.Work.ProbeFor(r.Context(), c.peer, in)
	s.reply(w, r, http.StatusOK, out, err)
}

// PeerStart starts a worker for the home's Dispatch.
func (s peerHandlers) PeerStart(w http.ResponseWriter, r *http.Request, params peerapi.PeerStartParams) {
	home := callOf(r).peer
	mutate(s.Server, w, r, verb[hub.PeerStart, hub.Receipt]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b hub.PeerStart) (hub.Receipt, error) {
			return s.cfg.Work.StartFor(ctx, q, home, b)
		},
		show: func(o hub.Receipt) (int, any) { return startStatus(o), o },
	})
}

// PeerShow says what this hub observes of the home's Dispatch.
func (s peerHandlers) PeerShow(w http.ResponseWriter, r *http.Request, id peerapi.DispatchParam) {
	out, err := s.cfg.Work.ShowFor(r.Context(), callOf(r).peer, hub.DispatchID(id))
	s.reply(w, r, http.StatusOK, out, err)
}

// PeerStop ends the process of the home's Dispatch.
func (s peerHandlers) PeerStop(w http.ResponseWriter, r *http.Request, id peerapi.DispatchParam, params peerapi.PeerStopParams) {
	home := callOf(r).peer
	mutate(s.Server, w, r, verb[hub.PeerStop, hub.StopEvidence]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b hub.PeerStop) (hub.StopEvidence, error) {
			if !hub.ValidID(hub.PrefixDispatch, id) {
				return hub.StopEvidence{}, hub.Invalid("dispatch", "is no Dispatch id")
			}
			return s.cfg.Work.StopFor(ctx, q, home, hub.DispatchID(id), b)
		},
		show: func(o hub.StopEvidence) (int, any) { return http.StatusOK, o },
	})
}

// PeerOutput shows the end of the worker's output, as much as one answer
// holds.
func (s peerHandlers) PeerOutput(w http.ResponseWriter, r *http.Request, id peerapi.DispatchParam, params peerapi.PeerOutputParams) {
	page, err := s.cfg.Work.OutputFor(r.Context(), callOf(r).peer, hub.DispatchID(id), work.OutputQuery{
		Source: params.Source, Limit: params.Limit, Cursor: params.Cursor, WaitMS: params.WaitMs,
	})
	if err == nil {
		page, err = fitting(page)
	}
	s.reply(w, r, http.StatusOK, page, err)
}

// fitting leaves away the beginning of a first page's text until it fits:
// characters may take several bytes each in JSON. Pages behind a cursor are small
// enough as they are.
func fitting(page hub.OutputPage) (hub.OutputPage, error) {
	for {
		raw, err := encode(page)
		if err != nil || len(raw) <= maxPeerAnswer || page.Terminal == nil || page.Terminal.Text == "" {
			return page, err
		}
		text := page.Terminal.Text[(len(page.Terminal.Text)+1)/2:]
		for text != "" && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
		page.Terminal = &hub.TerminalText{Text: text, Truncated: true}
	}
}
