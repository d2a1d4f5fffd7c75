package wave

import (
	"flag"
	"os"
	"testing"
)

// modelCases sets how many cases the model of the engine is tried with, by
// WAVEHUB_TEST_SCALE, for the rest of the test; a -rapid.checks of one's own wins.
func modelCases(t *testing.T) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	if was != f.DefValue {
		return
	}
	cases := map[string]string{"medium": "6000", "full": "500000"}[os.Getenv("WAVEHUB_TEST_SCALE")]
	if cases == "" {
		cases = "3000"
	}
	if err := flag.Set("rapid.checks", cases); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set("rapid.checks", was); err != nil {
			t.Error(err)
		}
	})
	t.Log("the model is tried with", cases, "cases")
}
