package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

func samples() []Frame {
	return []Frame{
		Hello{StoreID: "s", Epoch: 2, Nonce: "n", Contract: hub.ContractFederation, Credit: 1 << 20,
			Feed: hub.FeedState{StoreID: "t", Epoch: 1, Position: 9, Items: 8}, Next: []hub.Want{{Dispatch: "dispatch_a", Seq: 3}}, Begin: 4, End: 7, Swept: 2, Acked: 6, Features: []string{hub.FeaturePresence}},
		Items{[]hub.Item{
			{Pos: 1, Seq: 1, Dispatch: "dispatch_a", ID: "msg_a", Kind: hub.ItemMessage, Payload: []byte(`{"a":1}`)},
			{Pos: 2, Seq: 1, Dispatch: "dispatch_b", ID: "msg_b", Kind: hub.ItemExit, Payload: []byte{}},
		}},
		Acks{[]hub.Ack{{Dispatch: "dispatch_a", Seq: 4, Verdicts: []hub.ItemVerdict{{Seq: 4, Verdict: "accepted", Reason: "r"}}},
			{Dispatch: "dispatch_b", Parked: "unknown_dispatch"}}},
		Wants{[]hub.Want{{Dispatch: "dispatch_a", Seq: 7, Until: 9}}}, Kept{[]hub.Want{{Dispatch: "dispatch_a", Seq: 8}}},
		Credit{1000}, Ping{15000, 3}, Pong{15000}, Goodbye{"peer_revoked", "removed"},
		Presence{3, []hub.Presence{
			{Dispatch: "dispatch_a", Process: hub.Live, LastOutputAt: 5, LastReportAt: 6, WaitingFor: "none", Usage: []byte(`{"a":1}`)},
			{Dispatch: "dispatch_b", Process: hub.Unverifiable, Lost: true}, {Dispatch: "dispatch_c", Process: hub.Exited, Ended: true},
		}},
	}
}

func encode(t testing.TB, f Frame) []byte {
	t.Helper()
	b, err := Encode(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	for _, f := range samples() {
		got, err := Decode(encode(t, f))
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%T: got %+v (%v), want %+v", f, got, err, f)
		}
	}
}

func TestEveryCutAndTailIsRefused(t *testing.T) {
	for _, f := range samples() {
		b := encode(t, f)
		for n := range b {
			if _, err := Decode(b[:n]); err == nil {
				t.Fatalf("%T cut at %d of %d passes", f, n, len(b))
			}
		}
		if _, err := Decode(append(bytes.Clone(b), 0)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%T with a trailing byte: %v", f, err)
		}
	}
}

func TestTypedErrors(t *testing.T) {
	items := encode(t, samples()[1])
	damaged := bytes.Clone(items)
	damaged[bytes.Index(damaged, []byte(`{"a":1}`))] ^= 1
	flagged := encode(t, Presence{1, []hub.Presence{{}}})
	flagged[len(flagged)-3] = flagsEnd
	huge := []byte{Version, byte(KindWants), 0xff, 0xff, 0xff, 0xff}
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"empty":    {nil, ErrMalformed},
		"version":  {[]byte{9, byte(KindPing)}, ErrVersion},
		"kind":     {[]byte{Version, 99}, ErrKind},
		"giant":    {make([]byte, MaxFrame+1), ErrTooLarge},
		"digest":   {damaged, ErrDigest},
		"count":    {huge, ErrMalformed},
		"flags":    {flagged, ErrMalformed},
		"negative": {[]byte{Version, byte(KindCredit), 0xff, 0, 0, 0, 0, 0, 0, 0}, ErrMalformed},
		"utf8":     {[]byte{Version, byte(KindGoodbye), 0, 1, 0xff, 0, 0}, ErrMalformed},
	} {
		if _, err := Decode(c.raw); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestEncodeKeepsTheLimits(t *testing.T) {
	for name, f := range map[string]Frame{
		"text":     Goodbye{Text: strings.Repeat("x", MaxText+1)},
		"utf8":     Goodbye{Text: "\xff"},
		"items":    Items{make([]hub.Item, MaxItems+1)},
		"workers":  Presence{1, make([]hub.Presence, MaxWorkers+1)},
		"features": Hello{Features: make([]string, MaxFeatures+1)},
		"payload":  Items{[]hub.Item{{Payload: make([]byte, MaxFrame)}}},
	} {
		if b, err := Encode([]byte("kept"), f); err == nil || string(b) != "kept" {
			t.Errorf("%s: %v, %d bytes", name, err, len(b))
		}
	}
	fit := hub.Item{Dispatch: "d", ID: "m", Kind: "k"}
	fit.Payload = make([]byte, ItemsRoom-ItemSize(fit))
	one := presenceOf(samples())
	size := headerSize + 8 + countSize
	for _, p := range one.Workers {
		size += PresenceSize(p)
	}
	if len(encode(t, one)) != size {
		t.Error("PresenceSize disagrees with the encoding")
	}
	if len(encode(t, Items{[]hub.Item{fit}})) != MaxFrame {
		t.Error("ItemSize and ItemsRoom disagree with the encoding")
	}
}

func genItem() *rapid.Generator[hub.Item] {
	return rapid.Custom(func(t *rapid.T) hub.Item {
		return hub.Item{
			Pos: rapid.Int64Min(0).Draw(t, "pos"), Seq: rapid.Int64Min(0).Draw(t, "seq"),
			Dispatch: hub.DispatchID(rapid.String().Draw(t, "d")), ID: hub.MessageID(rapid.String().Draw(t, "id")),
			Kind: hub.ItemKind(rapid.String().Draw(t, "kind")), Payload: rapid.SliceOf(rapid.Byte()).Draw(t, "payload"),
		}
	})
}

func TestPropertyItemsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Items{rapid.SliceOfN(genItem(), 1, 8).Draw(t, "items")}
		size := headerSize + countSize
		for _, it := range f.Items {
			size += ItemSize(it)
		}
		b, err := Encode(nil, f)
		if err != nil || len(b) != size {
			t.Fatalf("%d bytes (%v), want %d", len(b), err, size)
		}
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Encode(nil, got)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("re-encoding differs: %v", err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range samples() {
		f.Add(encode(f, s))
	}
	f.Add([]byte{Version, byte(KindWants), 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		fr, err := Decode(raw)
		if err != nil {
			return
		}
		again, err := Encode(nil, fr)
		if err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("re-encoding differs (%v): %x, was %x", err, again, raw)
		}
	})
}

func presenceOf(fs []Frame) Presence {
	for _, f := range fs {
		if p, ok := f.(Presence); ok {
			return p
		}
	}
	return Presence{}
}
