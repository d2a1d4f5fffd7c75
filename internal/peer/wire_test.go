package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// script is a joiner that says what it was told to, and keeps what it hears.
type script struct {
	say  [][]byte
	hear [][]byte
}

func (s *script) Send(_ context.Context, msg []byte) error {
	s.hear = append(s.hear, msg)
	return nil
}

func (s *script) Receive(context.Context) ([]byte, error) {
	if len(s.say) == 0 {
		return nil, io.EOF
	}
	msg := s.say[0]
	s.say = s.say[1:]
	return msg, nil
}

// played is a pairing with the script as its joiner, and its refusal.
func (s *side) played(t testing.TB, joiner *side, say ...[]byte) (heard [][]byte, err error) {
	t.Helper()
	m := &script{say: say}
	ch := channel{exporter: make([]byte, 32), joiner: joiner.id.Cert.Leaf.RawSubjectPublicKeyInfo, inviter: s.id.Cert.Leaf.RawSubjectPublicKeyInfo}
	err = s.serve(t.Context(), m, ch)
	return m.hear, err
}

// opening is a message 1 of joiner, changed by edit.
func opening(t testing.TB, joiner *side, slot string, edit func(map[string]any)) []byte {
	t.Helper()
	c, err := joiner.card(t.Context(), typeJoin, hub.RoleHome, hub.Grants{})
	if err != nil {
		t.Fatal(err)
	}
	c.Slot = slot
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(fields)
	}
	if raw, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAcceptance_F11_MalformedMessagesChangeNothing(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	slot := (*inv.Code)[:3]
	with := func(field string, value any) []byte {
		return opening(t, b, slot, func(f map[string]any) { f[field] = value })
	}
	good := opening(t, b, slot, nil)
	proof := func(kind string, proof any) []byte {
		raw, err := json.Marshal(map[string]any{"type": kind, "proof": proof})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for what, c := range map[string]struct {
		say  [][]byte
		code hub.Code
	}{
		"no JSON":                    {[][]byte{[]byte("join")}, hub.CodeInvalidJson},
		"no object":                  {[][]byte{[]byte(`["join"]`)}, hub.CodeInvalidJson},
		"no type":                    {[][]byte{[]byte(`{}`)}, hub.CodeInvalidArgument},
		"an unknown type":            {[][]byte{[]byte(`{"type":"hello"}`)}, hub.CodeInvalidArgument},
		"message 3 first":            {[][]byte{proof(typeProve, make([]byte, 32))}, hub.CodeInvalidArgument},
		"message 5 as third":         {[][]byte{good, proof(typeConfirm, make([]byte, 32))}, hub.CodeInvalidArgument},
		"message 1 twice":            {[][]byte{good, good}, hub.CodeInvalidArgument},
		"a role that there is not":   {[][]byte{with("role", "boss")}, hub.CodeInvalidArgument},
		"a short nonce":              {[][]byte{with("nonce", []byte("short"))}, hub.CodeInvalidArgument},
		"no store":                   {[][]byte{with("store_id", "")}, hub.CodeInvalidArgument},
		"a negative epoch":           {[][]byte{with("store_epoch", -1)}, hub.CodeInvalidArgument},
		"an epoch that is no number": {[][]byte{with("store_epoch", "1")}, hub.CodeInvalidJson},
		"nine addresses":             {[][]byte{with("addresses", slices.Repeat([]string{"https://x"}, 9))}, hub.CodeInvalidArgument},
		"an address that is none":    {[][]byte{with("addresses", []string{"file:///etc/passwd"})}, hub.CodeInvalidArgument},
		"another hub's id":           {[][]byte{with("hub_id", a.id.HubID)}, hub.CodePairingProofMismatch},
		"a later contract alone":     {[][]byte{with("contracts", []string{"federation/2"})}, hub.CodeCapabilityUnsupported},
		"no contract":                {[][]byte{with("contracts", []string{})}, hub.CodeCapabilityUnsupported},
		"a proof that is no text":    {[][]byte{good, proof(typeProve, 1)}, hub.CodeInvalidJson},
		"a proof that is no base64":  {[][]byte{good, proof(typeProve, "?")}, hub.CodeInvalidJson},
		"a refusal":                  {[][]byte{[]byte(`{"type":"refused","code":"pairing_proof_mismatch"}`)}, hub.CodePairingProofMismatch},
		"a refusal as it cannot be":  {[][]byte{[]byte(`{"type":"refused","code":"outcome_unknown"}`)}, hub.CodeRemoteRuntimeUnavailable},
	} {
		_, err := a.played(t, b, c.say...)
		wantCode(t, what, err, c.code)
	}
	if i := a.store.invites[0]; i.Used || i.Wrong != 0 || len(a.store.all()) != 0 {
		t.Errorf("something has changed: %+v", i)
	}
	for what, first := range map[string][]byte{
		"a later contract beside": with("contracts", []string{"federation/2", hub.ContractFederation}),
		"a later field":           with("favourite_colour", "blue"),
	} {
		if heard, err := a.played(t, b, first); !errors.Is(err, io.EOF) || len(heard) != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestOversizedPairingMessage(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	m, _, end, err := b.reach(t.Context(), a.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	big := opening(t, b, (*inv.Code)[:3], func(f map[string]any) { f["name"] = strings.Repeat("x", maxPairMessage) })
	if err := m.Send(t.Context(), big); err == nil {
		_, err = m.Receive(t.Context())
		if err == nil {
			t.Error("it was answered")
		}
	}
	a.idle(t)
}

// TestAcceptance_F11_AnUnknownSlotLooksLikeAKnownOne compares what a joiner with
// a wrong code sees: the same fields, the same refusal, not sooner.
func TestAcceptance_F11_AnUnknownSlotLooksLikeAKnownOne(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{Grants: hub.Grants{MaxWorkers: 3}})
	const least = 50 * time.Millisecond
	a.cfg.FailureAfter = least
	a.restart()
	shapes := map[string][]byte{}
	for _, slot := range []string{(*inv.Code)[:3], "ZZZ"} {
		from := time.Now()
		heard, err := a.played(t, b, opening(t, b, slot, nil), []byte(`{"type":"prove","proof":"AAAA"}`))
		if took := time.Since(from); took < least {
			t.Errorf("%s is answered after %s", slot, took)
		}
		wantCode(t, slot, err, hub.CodePairingProofMismatch)
		if len(heard) != 1 {
			t.Fatalf("%s: %d messages", slot, len(heard))
		}
		var c card
		if err := decodeMessage(heard[0], typeOffer, &c); err != nil || len(c.Nonce) != 32 {
			t.Fatalf("%s: %v", slot, err)
		}
		c.Nonce = nil
		if shapes[slot], err = json.Marshal(c); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(shapes["ZZZ"], shapes[(*inv.Code)[:3]]) {
		t.Errorf("they differ:\n%s\n%s", shapes["ZZZ"], shapes[(*inv.Code)[:3]])
	}
}

func TestAWrongCheckCharacterBurnsNothing(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	for range 2 * hub.MaxWrongProofs {
		_, err := b.join(JoinInput{Name: "box", URL: a.url, Code: typo(*inv.Code)})
		wantCode(t, "a typo", err, hub.CodeInvalidArgument)
	}
	if a.requests() != 0 || a.store.invites[0].Wrong != 0 {
		t.Error("it was sent")
	}
	if _, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code}); err != nil {
		t.Error(err)
	}
}

// FuzzPairing plays any three messages to an inviter. It stores no peer, counts
// one wrong proof at most, and says nothing but message 2.
func FuzzPairing(f *testing.F) {
	a, b := newSide(f, "a"), newSide(f, "b")
	a.put(hub.Invite{ID: hub.NewInviteID(), Slot: "ABC", Key: random(32), Role: hub.RoleWorker, ExpiresAt: a.store.now().Add(24 * time.Hour)})
	first := opening(f, b, "ABC", nil)
	f.Add(first, []byte(`{"type":"prove","proof":"AAAA"}`), []byte(`{"type":"confirm","proof":"AAAA"}`))
	f.Add(opening(f, b, "ZZZ", nil), []byte(`{"type":"refused","code":"internal"}`), []byte(`{}`))
	f.Add([]byte(`{"type":"join","role":"mutual","contracts":["federation/9"]}`), []byte(`null`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, one, two, three []byte) {
		before := a.store.invites[0].Wrong
		heard, err := a.played(t, b, one, two, three)
		if err == nil || len(heard) > 1 || len(a.store.all()) != 0 {
			t.Fatalf("%d messages, %d peers, %v", len(heard), len(a.store.all()), err)
		}
		if n := a.store.invites[0].Wrong - before; n > 1 {
			t.Fatalf("%d wrong proofs of one", n)
		}
		if len(heard) == 1 && decodeMessage(heard[0], typeOffer, &card{}) != nil {
			t.Fatalf("it said %s", heard[0])
		}
		for kind, v := range map[string]any{typeJoin: &card{}, typeOffer: &card{}, typeProve: &step{}, typeDone: &step{}} {
			decodes(t, one, kind, v)
		}
	})
}

// decodes demands that a message which is taken is taken as it is encoded again.
func decodes(t *testing.T, raw []byte, kind string, v any) {
	t.Helper()
	if decodeMessage(raw, kind, v) != nil {
		return
	}
	again, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := decodeMessage(again, kind, v); err != nil {
		t.Fatalf("%s: %v", again, err)
	}
}
