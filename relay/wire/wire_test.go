package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

const oneID hub.DispatchID = "dispatch_00000000000000000000000001"

func samples() []Frame {
	return []Frame{
		Hello{StoreID: "s", Epoch: 2, Nonce: "n", Contract: hub.ContractFederation, Credit: 1 << 20,
			Feed: hub.FeedState{StoreID: "t", Epoch: 1, Position: 9, Items: 8, Seen: 2}, Next: []hub.Want{{Dispatch: "dispatch_a", Seq: 3}}, Begin: 4, End: 7, Swept: 2, Acked: 6, Features: []string{hub.FeaturePresence}},
		Items{[]hub.Item{
			{Pos: 1, Seq: 1, Dispatch: "dispatch_a", ID: "msg_a", Kind: hub.ItemMessage, Payload: []byte(`{"a":1}`)},
			{Pos: 2, Seq: 1, Dispatch: "dispatch_b", ID: "msg_b", Kind: hub.ItemExit, Payload: []byte{}},
		}},
		Items{[]hub.Item{
			{Pos: 9, Seq: 4, Dispatch: oneID, ID: "msg_00000000000000000000000002", Kind: hub.ItemMessage, Payload: []byte(`{}`)},
			{Pos: 7, Seq: 9, Dispatch: "dispatch_b", ID: "msg_b", Kind: "of the future", Payload: []byte{0xff}},
			{Pos: 10, Seq: 5, Dispatch: oneID, ID: "msg_00000000000000000000000003", Kind: hub.ItemStarted, Payload: []byte{}},
		}},
		Acks{[]hub.Ack{{Dispatch: "dispatch_a", Seq: 4, Verdicts: []hub.ItemVerdict{
			{Seq: 3, Verdict: hub.VerdictDuplicate}, {Seq: 4, Verdict: hub.VerdictAccepted, Reason: "r"}, {Seq: 4, Verdict: "of the future"}}},
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

// sealed is a frame of which a test has made the bytes.
func sealed(raw ...byte) []byte {
	return binary.BigEndian.AppendUint32(raw, digest(raw))
}

func unsealed(raw []byte) []byte { return raw[: len(raw)-digestSize : len(raw)-digestSize] }

func TestEveryCutAndTailIsRefused(t *testing.T) {
	for _, f := range samples() {
		b := unsealed(encode(t, f))
		for n := range b {
			if _, err := Decode(sealed(bytes.Clone(b[:n])...)); !errors.Is(err, ErrMalformed) {
				t.Fatalf("%T cut at %d of %d: %v", f, n, len(b), err)
			}
		}
		if _, err := Decode(sealed(append(b, 0)...)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%T with a trailing byte: %v", f, err)
		}
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	for _, f := range samples() {
		b := encode(t, f)
		for n := range 8 * len(b) {
			b[n/8] ^= 1 << (n % 8)
			if _, err := Decode(b); !errors.Is(err, ErrDigest) && !errors.Is(err, ErrVersion) {
				t.Fatalf("%T with bit %d turned: %v", f, n, err)
			}
			b[n/8] ^= 1 << (n % 8)
		}
	}
}

func TestTypedErrors(t *testing.T) {
	items := encode(t, samples()[1])
	damaged := bytes.Clone(items)
	damaged[bytes.Index(damaged, []byte(`{"a":1}`))] ^= 1
	long := binary.AppendUvarint([]byte{Version, byte(KindGoodbye)}, MaxText+1)
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"empty":    {nil, ErrMalformed},
		"short":    {sealed(Version), ErrMalformed},
		"version":  {sealed(9, byte(KindPing)), ErrVersion},
		"kind":     {sealed(Version, 99), ErrKind},
		"giant":    {make([]byte, MaxFrame+1), ErrTooLarge},
		"digest":   {damaged, ErrDigest},
		"damaged":  {damaged, ErrMalformed},
		"count":    {sealed(Version, byte(KindWants), 0xff, 0xff, 0xff, 0xff, 0x0f), ErrMalformed},
		"flags":    {sealed(Version, byte(KindPresence), 1, 1, 1, 0, 0, 0, 0, flagsEnd, 0), ErrMalformed},
		"negative": {sealed(Version, byte(KindCredit), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), ErrMalformed},
		"overflow": {sealed(Version, byte(KindCredit), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2), ErrMalformed},
		"utf8":     {sealed(Version, byte(KindGoodbye), 1, 0xff, 0), ErrMalformed},
		"long":     {sealed(append(long, make([]byte, MaxText+2)...)...), ErrMalformed},
	} {
		if _, err := Decode(c.raw); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestOneEncoding: what has a shorter form, or another, is refused.
func TestOneEncoding(t *testing.T) {
	want := func(seq ...byte) []byte {
		return append(append([]byte{Version, byte(KindWants), 1, 2, 'd'}, seq...), 0)
	}
	item := func(b ...byte) []byte { return append([]byte{Version, byte(KindItems)}, b...) }
	acks := func(b ...byte) []byte { return append([]byte{Version, byte(KindAcks), 1, 2, 'd', 4, 0, 1, 4}, b...) }
	for name, c := range map[string]struct{ good, bad []byte }{
		"a number of two bytes":   {want(5), want(0x85, 0)},
		"an id as a text":         {want(5), append(append([]byte{Version, byte(KindWants), 1, 36}, oneID...), 5, 0)},
		"a kind as a text":        {item(1, 0, 2, 'd', 2, 2, 2, 2, 'm', 0), item(1, 0, 2, 'd', 2, 2, 0, 4, 'e', 'x', 'i', 't', 2, 'm', 0)},
		"a kind beyond the known": {item(1, 0, 2, 'd', 2, 2, 8, 2, 'm', 0), item(1, 0, 2, 'd', 2, 2, 9, 2, 'm', 0)},
		"a Dispatch twice":        {item(2, 0, 2, 'd', 2, 2, 2, 2, 'm', 0, 1, 2, 2, 2, 2, 'm', 0), item(2, 0, 2, 'd', 2, 2, 2, 2, 'm', 0, 0, 2, 'd', 2, 2, 2, 2, 'm', 0)},
		"a Dispatch of no place":  {item(1, 0, 2, 'd', 2, 2, 2, 2, 'm', 0), item(1, 1, 2, 2, 2, 2, 'm', 0, 0, 0)},
		"below 0":                 {item(1, 0, 2, 'd', 0, 2, 2, 2, 'm', 0), item(1, 0, 2, 'd', 1, 2, 2, 2, 'm', 0)},
		"a verdict as a text":     {acks(2), acks(0, 5, 's', 't', 'a', 'l', 'e')},
		"an empty reason":         {acks(2|flagReason, 1, 'r'), acks(2|flagReason, 0)},
	} {
		if _, err := Decode(sealed(c.good...)); err != nil {
			t.Errorf("not %s: %v", name, err)
		}
		if f, err := Decode(sealed(c.bad...)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

func TestEncodeKeepsTheLimits(t *testing.T) {
	half := hub.Item{Payload: make([]byte, MaxFrame/2)}
	for name, f := range map[string]Frame{
		"text":     Goodbye{Text: strings.Repeat("x", MaxText+1)},
		"utf8":     Goodbye{Text: "\xff"},
		"items":    Items{make([]hub.Item, MaxItems+1)},
		"workers":  Presence{1, make([]hub.Presence, MaxWorkers+1)},
		"features": Hello{Features: make([]string, MaxFeatures+1)},
		"payload":  Items{[]hub.Item{{Payload: make([]byte, MaxFrame)}}},
		"payloads": Items{[]hub.Item{half, half, half}},
		"verdicts": Acks{[]hub.Ack{{Verdicts: make([]hub.ItemVerdict, MaxVerdicts)}, {Verdicts: make([]hub.ItemVerdict, 1)}}},
		"position": Items{[]hub.Item{{Pos: -1}}},
		"sequence": Wants{[]hub.Want{{Seq: -1}}},
	} {
		if b, err := Encode([]byte("kept"), f); err == nil || string(b) != "kept" {
			t.Errorf("%s: %v, %d bytes", name, err, len(b))
		}
	}
}

// TestSizesAreBounds: a frame of the worst items that ItemsRoom takes fits, and
// wastes little.
func TestSizesAreBounds(t *testing.T) {
	far := hub.Item{Pos: math.MaxInt64, Seq: math.MaxInt64, Dispatch: "d", ID: "m", Kind: "k"}
	far.Payload = make([]byte, ItemsRoom-ItemSize(far))
	if n := len(encode(t, Items{[]hub.Item{far}})); n > MaxFrame || n < MaxFrame-8 {
		t.Errorf("%d bytes of %d", n, MaxFrame)
	}
	size := 0
	one := presenceOf(samples())
	for i, p := range one.Workers {
		p.LastOutputAt, p.LastReportAt = math.MaxInt64, math.MaxInt64
		one.Workers[i], size = p, size+PresenceSize(p)
	}
	if n := len(encode(t, one)); n > headerSize+1+countSize+size+digestSize {
		t.Errorf("%d bytes, PresenceSize says %d", n, size)
	}
}

func genID(prefix string) *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", prefix, prefix + strings.Repeat("0", 26), prefix + "8" + strings.Repeat("0", 25)}),
		rapid.Custom(func(t *rapid.T) string {
			return hub.FormatID(prefix, [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")))
		}))
}

func genWord[T ~string](known []T) *rapid.Generator[T] {
	return rapid.OneOf(rapid.SampledFrom(known), rapid.Map(rapid.String(), func(s string) T { return T(s) }))
}

func genItem(of []string) *rapid.Generator[hub.Item] {
	return rapid.Custom(func(t *rapid.T) hub.Item {
		return hub.Item{
			Pos: rapid.Int64Min(0).Draw(t, "pos"), Seq: rapid.Int64Min(0).Draw(t, "seq"),
			Dispatch: hub.DispatchID(rapid.SampledFrom(of).Draw(t, "d")), ID: hub.MessageID(genID(hub.PrefixMessage).Draw(t, "id")),
			Kind: genWord(kindWords).Draw(t, "kind"), Payload: rapid.SliceOf(rapid.Byte()).Draw(t, "payload"),
		}
	})
}

func genAck() *rapid.Generator[hub.Ack] {
	return rapid.Custom(func(t *rapid.T) hub.Ack {
		a := hub.Ack{Dispatch: hub.DispatchID(genID(hub.PrefixDispatch).Draw(t, "d")), Seq: rapid.Int64Min(0).Draw(t, "seq"), Parked: rapid.String().Draw(t, "parked")}
		for range rapid.IntRange(0, 4).Draw(t, "verdicts") {
			a.Verdicts = append(a.Verdicts, hub.ItemVerdict{Seq: rapid.Int64Min(0).Draw(t, "of"),
				Verdict: genWord(verdictWords).Draw(t, "verdict"), Reason: rapid.String().Draw(t, "reason")})
		}
		return a
	})
}

// roundTrip returns the encoding.
func roundTrip(t *rapid.T, f Frame) []byte {
	b, err := Encode(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil || !reflect.DeepEqual(got, f) {
		t.Fatalf("got %+v (%v), want %+v", got, err, f)
	}
	again, err := Encode(nil, got)
	if err != nil || !bytes.Equal(again, b) {
		t.Fatalf("re-encoding differs: %v", err)
	}
	return b
}

func TestPropertyItemsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SliceOfN(genID(hub.PrefixDispatch), 1, 4).Draw(t, "of")
		f := Items{rapid.SliceOfN(genItem(of), 1, 8).Draw(t, "items")}
		size := headerSize + countSize + digestSize
		for _, it := range f.Items {
			size += ItemSize(it)
		}
		if n := len(roundTrip(t, f)); n > size {
			t.Fatalf("%d bytes, ItemSize says %d", n, size)
		}
	})
}

func TestPropertyAcksRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { roundTrip(t, Acks{rapid.SliceOfN(genAck(), 1, 8).Draw(t, "acks")}) })
}

// TestBatchOverhead is what a batch costs beside its payloads: the message's 16
// bytes, nine for what names and counts an item, and once each Dispatch and frame.
func TestBatchOverhead(t *testing.T) {
	const n, dispatches = 50, 5
	var f Items
	var of [dispatches]hub.DispatchID
	for i := range of {
		of[i] = hub.NewDispatchID()
	}
	for i := range n {
		f.Items = append(f.Items, hub.Item{Pos: 1<<30 + int64(i), Seq: 900 + int64(i/dispatches), Dispatch: of[i%dispatches],
			ID: hub.NewMessageID(), Kind: hub.ItemMessage, Payload: make([]byte, 1024)})
	}
	if got, most := len(encode(t, f))-n*1024, n*(16+9)+dispatches*20+16; got > most {
		t.Errorf("%d bytes beside the payloads, at most %d", got, most)
	}
}

// TestDecodeAllotsWhatIsThere: counts and references cannot make a small frame a
// large one.
func TestDecodeAllotsWhatIsThere(t *testing.T) {
	many := func(n int, head []byte, one ...byte) []byte {
		return sealed(append(append([]byte{Version}, head...), bytes.Repeat(one, n)...)...)
	}
	count := binary.AppendUvarint(nil, MaxItems)
	long := append(binary.AppendUvarint(nil, MaxText+1), bytes.Repeat([]byte("d"), MaxText)...)
	items := append(append([]byte{byte(KindItems)}, count...), append(append([]byte{0}, long...), 2, 2, 1, 1, 0)...)
	for name, raw := range map[string][]byte{
		"one Dispatch": many(MaxItems-1, items, 1, 2, 2, 1, 1, 0),
		"verdicts":     many(MaxVerdicts, append([]byte{byte(KindAcks), 1, 1, 0, 0}, count...), 1, 2),
		"acks":         many(MaxAcks, append([]byte{byte(KindAcks)}, count...), 1, 0, 0, 0),
		"wants":        many(MaxWants, append([]byte{byte(KindWants)}, count...), 1, 0, 0),
		"workers":      many(MaxWorkers, append([]byte{byte(KindPresence), 1}, count...), 1, 0, 0, 0, 0, 0, 0),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Decode(raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4*uint64(len(raw))+1<<19 {
			t.Errorf("%s: %d bytes allotted for %d", name, got, len(raw))
		}
	}
}

// FuzzDecode fuzzes what is behind the digest's back.
func FuzzDecode(f *testing.F) {
	for _, s := range samples() {
		f.Add(unsealed(encode(f, s)))
	}
	f.Add([]byte{Version, byte(KindWants), 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = sealed(bytes.Clone(raw)...)
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
