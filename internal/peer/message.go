package peer

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
)

// maxPairMessage bounds every message of a pairing, in bytes of JSON.
const maxPairMessage = 32 << 10

// The types of the six messages, and of the one that ends a pairing early.
const (
	typeJoin    = "join"    // 1, joiner
	typeOffer   = "offer"   // 2, inviter
	typeProve   = "prove"   // 3, joiner
	typeAccept  = "accept"  // 4, inviter
	typeConfirm = "confirm" // 5, joiner
	typeDone    = "done"    // 6, inviter
	typeRefused = "refused"
)

// card is what each side says of itself, in messages 1 and 2.
type card struct {
	Type       string   `json:"type"`
	Slot       string   `json:"slot,omitempty"` // message 1
	HubID      string   `json:"hub_id"`
	Proofs     []byte   `json:"proofs,omitempty"` // of a lineage whose key was rotated
	StoreID    string   `json:"store_id"`
	StoreEpoch int64    `json:"store_epoch"`
	Role       hub.Role `json:"role"`
	Nonce      []byte   `json:"nonce"`
	Contracts  []string `json:"contracts"`
	Name       string   `json:"name"`
	Addresses  []string `json:"addresses"`
	Grants     granted  `json:"grants"` // what the other side will be let do

	known string // the key of this hub that the other side has seen
}

// granted leaves out the repositories' paths: message 2 comes before a proof.
type granted struct {
	Verbs      []string `json:"verbs"`
	MaxWorkers int      `json:"max_workers"`
}

// step is any of the other messages.
type step struct {
	Type    string   `json:"type"`
	Proof   []byte   `json:"proof,omitempty"`
	Code    hub.Code `json:"code,omitempty"`
	Message string   `json:"message,omitempty"`
}

// messenger carries the messages of one pairing.
type messenger interface {
	Send(ctx context.Context, msg []byte) error
	Receive(ctx context.Context) ([]byte, error)
}

// check refuses a card that no hub of ours would send, or whose hub id is not
// proved to be that of the key that the connection proved.
func (c card) check(fingerprint string) error {
	switch {
	case !proved(c.HubID, c.Proofs, fingerprint):
		return errMismatch // somebody passes on what another hub said
	case c.StoreID == "" || len(c.StoreID) > 128 || c.StoreEpoch < 0:
		return hub.Invalid("store_id", "is missing or malformed")
	case len(c.Nonce) < 16:
		return hub.Invalid("nonce", "is too short")
	case c.Role.Opposite() == "":
		return hub.Invalid("role", "is home, worker or mutual")
	case !slices.Contains(c.Contracts, hub.ContractFederation):
		return hub.Errorf(hub.CodeCapabilityUnsupported, "the other hub does not offer %s", hub.ContractFederation)
	case len(c.Addresses) > hub.MaxAddresses:
		return hub.Invalid("addresses", "are too many")
	}
	for _, a := range c.Addresses {
		if _, err := parseAddress(a); err != nil {
			return err
		}
	}
	return nil
}

// parseAddress accepts https://HOST:PORT and nothing behind it.
func parseAddress(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || len(s) > 512 || u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, hub.Invalid("url", "must be https://HOST:PORT")
	}
	if u.Port() == "" {
		u.Host += ":7443"
	}
	u.Path = ""
	return u, nil
}

// agree returns the role that the side with role mine takes. One mutual side
// makes both mutual: what each lets the other do is its own grants.
func agree(mine, theirs hub.Role) (hub.Role, error) {
	switch {
	case mine == hub.RoleMutual || theirs == hub.RoleMutual:
		return hub.RoleMutual, nil
	case theirs == mine.Opposite():
		return mine, nil
	}
	return "", hub.Invalid("role", "both sides want to be the %s; invite with --as or join with --serve", mine)
}

func sendJSON(ctx context.Context, m messenger, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a pairing message: %w", err)
	}
	if len(raw) > maxPairMessage {
		return nil, hub.Errorf(hub.CodeTooLarge, "a pairing message of %d bytes", len(raw))
	}
	return raw, m.Send(ctx, raw)
}

// receive reads one message of the wanted type into v. The other side's
// refusal becomes the error it names.
func receive(ctx context.Context, m messenger, want string, v any) ([]byte, error) {
	raw, err := m.Receive(ctx)
	if err != nil {
		return nil, err
	}
	return raw, decodeMessage(raw, want, v)
}

// decodeMessage reads a message of the wanted type into v. Fields that this
// version does not know are passed over: later ones may add some.
func decodeMessage(raw []byte, want string, v any) error {
	var s struct{ Type string }
	if err := json.Unmarshal(raw, &s); err != nil {
		return hub.Errorf(hub.CodeInvalidJson, "a pairing message is not a JSON object with a type")
	}
	switch s.Type {
	case want:
		if err := json.Unmarshal(raw, v); err != nil {
			return hub.Errorf(hub.CodeInvalidJson, "a pairing message %q is malformed", want)
		}
		return nil
	case typeRefused:
		var r step
		if err := json.Unmarshal(raw, &r); err != nil {
			return hub.Errorf(hub.CodeInvalidJson, "a pairing message %q is malformed", typeRefused)
		}
		return refusalOf(r)
	}
	return hub.Invalid("type", "%.64q instead of %q", s.Type, want)
}

// refusals are the codes that the other side may give as its reason. Any other
// one would say something of this hub that the other does not know.
var refusals = []hub.Code{
	hub.CodePairingProofMismatch, hub.CodeInviteExpired, hub.CodeInvalidArgument, hub.CodeInvalidJson, hub.CodeTooLarge,
	hub.CodeCapabilityUnsupported, hub.CodeNameTaken, hub.CodePeerRevoked, hub.CodeRateLimited, hub.CodeHubDraining, hub.CodeStorageFull,
}

// maxReason bounds what is shown of the other side's words, in bytes.
const maxReason = 256

// refusalOf is the other side's reason, under its own code where it can have it.
func refusalOf(s step) error {
	if !slices.Contains(refusals, s.Code) {
		return hub.Errorf(hub.CodeRemoteRuntimeUnavailable, "the other hub failed while pairing")
	}
	e := hub.Errorf(s.Code, "the other hub refused")
	if s.Message != "" {
		e.Message += ": " + s.Message[:min(len(s.Message), maxReason)]
	}
	return e
}

// refuse tells the other side; the connection may be gone.
func refuse(ctx context.Context, m messenger, why error) {
	s := step{Type: typeRefused, Code: hub.CodeOf(why)}
	if s.Code != hub.CodeInternal {
		s.Message = s.Code.Info().Title
	}
	_, _ = sendJSON(ctx, m, s)
}

func sendProof(ctx context.Context, m messenger, kind string, proof []byte) error {
	_, err := sendJSON(ctx, m, step{Type: kind, Proof: proof})
	return err
}

func receiveProof(ctx context.Context, m messenger, kind string, want []byte) error {
	var s step
	if _, err := receive(ctx, m, kind, &s); err != nil {
		return err
	}
	if !hmac.Equal(s.Proof, want) {
		return errMismatch
	}
	return nil
}

var errMismatch = &hub.Error{
	Code: hub.CodePairingProofMismatch, Message: "the pairing proof does not match",
	Hint: "the code is wrong, or of before a rotation of the inviter's key, or something sits between the two hubs; make a new invite and compare the fingerprints",
}

func fingerprintOf(spki []byte) string { return keystore.Fingerprint(spki) }
