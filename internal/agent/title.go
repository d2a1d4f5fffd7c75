package agent

import (
	"strings"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// TitleState tells an agent's state from its terminal: title is what it last
// set as the window's title, osc the text of another such sequence ("7501;…"
// of codex), either "" for none. False says that nothing follows. It is the
// only sign of a turn that a person broke off, but weaker than a hook: an idle
// title must not displace a permission that a hook told of, since Claude Code
// shows the same for both.
func TitleState(kind, title, osc string) (hub.AgentEventKind, bool) {
	p := everywhere()[kind]
	if p.title == nil {
		return "", false
	}
	return p.title(strings.TrimSpace(title), osc)
}

// hasMark reports whether the title begins with the mark.
func hasMark(title string, mark rune) bool {
	r, _ := utf8.DecodeRuneInString(title)
	return r == mark
}

// spins reports whether the title begins with a spinner of Braille characters
// and a space.
func spins(title string) bool {
	r, size := utf8.DecodeRuneInString(title)
	return r >= 0x2800 && r <= 0x28ff && (len(title) == size || title[size] == ' ')
}
