package work

import (
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// A token is masked also where the terminal's width breaks it.
func TestTokensAreMaskedAcrossRows(t *testing.T) {
	token := "whd_" + strings.Repeat("x", 40)
	sc := maskScreen(hub.Screen{
		Size: hub.TerminalSize{Rows: 3, Cols: 20}, Title: "of " + token,
		Scrollback: []string{"below", "ünd token " + token[:10]}, Lines: []string{token[10:30], token[30:], "end"},
	})
	stars := strings.Repeat("*", 44)
	if want := []string{"below", "ünd token " + stars[:10]}; !slices.Equal(sc.Scrollback, want) {
		t.Errorf("above: %q, want %q", sc.Scrollback, want)
	}
	if want := []string{stars[:20], stars[:14], "end"}; !slices.Equal(sc.Lines, want) || sc.Title != "of "+stars {
		t.Errorf("lines: %q, want %q; title %q", sc.Lines, want, sc.Title)
	}
}

func TestScreensAreCutAbove(t *testing.T) {
	sc := cutScreen(hub.Screen{Scrollback: []string{"123456", "12", "1234"}, Lines: []string{"abc"}}, 10)
	if want := []string{"12", "1234"}; !slices.Equal(sc.Scrollback, want) || !sc.Truncated || len(sc.Lines) != 1 {
		t.Errorf("%+v", sc)
	}
}

// untouched is proof, so that what it does not know is none.
func TestUntouchedIsProof(t *testing.T) {
	for code, want := range map[hub.Code]bool{
		hub.CodeInvalidArgument: true, hub.CodeDispatchInactive: true, hub.CodePreconditionFailed: true, hub.CodeCapabilityUnsupported: true,
		hub.CodeTerminalBusy: false, hub.CodeOutcomeUnknown: false, hub.CodeInternal: false,
	} {
		if got := untouched(hub.Errorf(code, "x")); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
	if untouched(nil) {
		t.Error("no error is no proof")
	}
}
