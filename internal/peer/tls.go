package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
)

// ServerName is the SNI by which a listener tells peers from API clients.
const ServerName = "peer.wavehub.internal"

// Keys says which keys a listener accepts; Service implements it.
type Keys interface {
	ByFingerprint(ctx context.Context, fp string) (hub.Peer, bool, error)
	InviteOpen(ctx context.Context) bool
	// Replaced finds the peer that had the key before another took its place.
	Replaced(ctx context.Context, fp string) (hub.Peer, bool, error)
	// Refused notes that a connection of the peer was refused at a stage.
	Refused(p hub.Peer, stage string, err error)
}

// ServerConfig is the TLS configuration for one connection with the peers'
// server name, to be returned by GetConfigForClient with the handshake's
// context. It wants a client key: that of a known peer, or any while an
// invite is open. In that case the key proves nothing yet: the peer mux asks
// Service.Admit and lets an unknown key reach the pairing route only.
//
// Of several keys of this hub it shows the one that the dialler asks for by
// name: that which it has pinned.
func ServerConfig(ctx context.Context, id keystore.Source, keys Keys) *tls.Config {
	cfg := baseConfig()
	cfg.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert := id.Now().Asked(h.ServerName, ServerName).Cert
		return &cert, nil
	}
	cfg.ClientAuth = tls.RequireAnyClientCert
	cfg.VerifyConnection = func(cs tls.ConnectionState) error { return judge(ctx, keys, KeyOf(&cs)) }
	return cfg
}

func judge(ctx context.Context, keys Keys, fp string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	p, known, err := keys.ByFingerprint(ctx, fp)
	switch {
	case err != nil:
		return err
	case known && p.State.Trusted(), keys.InviteOpen(ctx):
		return nil
	case known:
		err = hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
		keys.Refused(p, StageTLS, err)
		return err
	}
	return cmp.Or(refuseReplaced(ctx, keys, fp), error(hub.Errorf(hub.CodeInvalidToken, "the key %s is unknown and no invite is open", fp)))
}

// refuseReplaced refuses a key that was rotated away: peer_changed, nil for any
// other.
func refuseReplaced(ctx context.Context, keys Keys, fp string) error {
	p, was, err := keys.Replaced(ctx, fp)
	if err != nil || !was {
		return err
	}
	err = hub.Errorf(hub.CodePeerChanged, "%s comes with the key %s, which %s has replaced", p.Name, fp, p.Fingerprint)
	keys.Refused(p, StagePin, err)
	return err
}

// ClientConfig is the TLS configuration for dialling a peer. The server's key
// must be pin, else the handshake fails with peer_changed before anything of
// ours is sent. An empty pin accepts any key and is for pairing alone, whose
// proof is bound to the connection.
func ClientConfig(own keystore.Key, pin string) *tls.Config {
	cfg := baseConfig()
	cfg.Certificates = []tls.Certificate{own.Cert}
	cfg.ServerName = keystore.ServerName(pin, ServerName)
	cfg.InsecureSkipVerify = true // keys are pinned; names and dates mean nothing
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		if fp := KeyOf(&cs); pin != "" && fp != pin {
			return changed(pin, fp)
		}
		return nil
	}
	return cfg
}

func changed(pin, got string) error {
	e := hub.Errorf(hub.CodePeerChanged, "the address answers with the key %s, pinned is %s", got, pin)
	e.Hint = "another hub has taken the address; nothing was sent. To use that hub too, pair it under another name"
	return e
}

func baseConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		NextProtos:             []string{"http/1.1"},
	}
}

// KeyOf returns the fingerprint of the other side's key, "" without one.
func KeyOf(cs *tls.ConnectionState) string {
	if cs == nil || len(cs.PeerCertificates) == 0 {
		return ""
	}
	return keystore.FingerprintOf(cs.PeerCertificates[0])
}

// channelOf gathers what binds a pairing to its connection.
func channelOf(cs *tls.ConnectionState, own keystore.Key, joining bool) (channel, error) {
	if cs == nil || cs.Version != tls.VersionTLS13 || len(cs.PeerCertificates) == 0 {
		return channel{}, hub.Errorf(hub.CodeInvalidToken, "pairing needs TLS 1.3 with a key on both sides")
	}
	exp, err := cs.ExportKeyingMaterial(exporterLabel, nil, 32)
	if err != nil {
		return channel{}, fmt.Errorf("exporting from the TLS connection: %w", err)
	}
	mine, theirs := own.SPKI(), cs.PeerCertificates[0].RawSubjectPublicKeyInfo
	if joining {
		return channel{exporter: exp, joiner: mine, inviter: theirs}, nil
	}
	return channel{exporter: exp, joiner: theirs, inviter: mine}, nil
}

// Principal is what the pinned key of p proves.
func Principal(p hub.Peer) hub.Principal {
	return hub.Principal{Kind: hub.PeerKey, ID: p.Lineage, Credential: string(p.ID)}
}
