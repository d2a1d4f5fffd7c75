package proc

import "testing"

func TestTheTimeSinceBootGoesOn(t *testing.T) {
	before, err := SinceBoot()
	if err != nil || before <= 0 {
		t.Fatalf("%v %v", before, err)
	}
	if after, err := SinceBoot(); err != nil || after < before {
		t.Errorf("%v after %v: %v", after, before, err)
	}
}
