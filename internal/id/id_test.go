package id

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNewIsValidAndSorted(t *testing.T) {
	var ids []string
	for range 1000 {
		ids = append(ids, New("run_"))
	}
	if !slices.IsSorted(ids) {
		t.Fatal("ids minted one after another are not sorted")
	}
	if len(slices.Compact(ids)) != 1000 {
		t.Fatal("ids repeat")
	}
}

func TestEncodeKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "b")
		ta, tb := Encode([16]byte(a)), Encode([16]byte(b))
		if !Valid("", ta) {
			t.Fatalf("%q is not valid", ta)
		}
		if (slices.Compare(a, b) < 0) != (ta < tb) {
			t.Fatalf("order of %x and %x is lost in %s and %s", a, b, ta, tb)
		}
	})
}

func TestValidRefuses(t *testing.T) {
	good := New("msg_")
	for _, bad := range []string{"", "msg_", good + "0", good[:len(good)-1], "run_" + good[4:], "msg_8" + good[5:], "msg_" + "u" + good[5:], "MSG_" + good[4:]} {
		if Valid("msg_", bad) {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}

func TestParseIsTheReverseOfFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "b"))
		text := Format("dispatch_", b)
		if back, ok := Parse("dispatch_", text); !ok || back != b {
			t.Fatalf("%x became %s and %x (%v)", b, text, back, ok)
		}
		if _, ok := Parse("msg_", text); ok {
			t.Fatalf("%s is taken for a message", text)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9a-hj-km-np-tv-z]{26}`).Draw(t, "text")
		b, ok := Parse("", text)
		if ok != (text[0] <= '7') || ok && Encode(b) != text {
			t.Fatalf("%s became %x (%v)", text, b, ok)
		}
	})
}
