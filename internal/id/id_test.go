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
