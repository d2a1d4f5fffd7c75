package wave

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain takes the number of cases of the models from WAVEHUB_TEST_SCALE; a
// -rapid.checks of one's own wins.
func TestMain(m *testing.M) {
	flag.Parse()
	checks := map[string]string{"medium": "20000", "full": "500000"}[os.Getenv("WAVEHUB_TEST_SCALE")]
	if checks == "" {
		checks = "3000"
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", checks); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("models:", checks, "cases")
	}
	os.Exit(m.Run())
}
