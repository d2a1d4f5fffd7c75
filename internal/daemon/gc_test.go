package daemon

import "testing"

func TestGarbageBetweenCollections(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 1 << 20: 800, 4 << 20: 300, 12 << 20: 100, 26 << 20: 50, 1 << 30: 50} {
		if got := gcPercent(live); got != want {
			t.Errorf("with %d bytes live: %d %%, want %d", live, got, want)
		}
	}
}
