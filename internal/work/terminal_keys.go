package work

import (
	"strings"
	"unicode"

	"github.com/wavehub/wavehub/internal/hub"
)

// Keys of a keyboard as a terminal sends them; ctrl-a to ctrl-z are computed.
var keys = map[string]string{
	"enter": "\r", "esc": "\x1b", "tab": "\t", "shift-tab": "\x1b[Z", "space": " ", "backspace": "\x7f", "delete": "\x1b[3~",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
	"page-up": "\x1b[5~", "page-down": "\x1b[6~",
}

// keyBytes is what a key sends.
func keyBytes(name string) (string, error) {
	if letter, ok := strings.CutPrefix(name, "ctrl-"); ok && len(letter) == 1 && letter[0] >= 'a' && letter[0] <= 'z' {
		return string(rune(letter[0] - 'a' + 1)), nil
	}
	if s, ok := keys[name]; ok {
		return s, nil
	}
	return "", hub.Invalid("keys", "there is no key %q: ctrl-a to ctrl-z, enter, esc, tab, shift-tab, space, backspace, delete, up, down, left, right, home, end, page-up, page-down", name)
}

func keysBytes(names []string) (string, error) {
	var out strings.Builder
	for _, name := range names {
		s, err := keyBytes(name)
		if err != nil {
			return "", err
		}
		out.WriteString(s)
	}
	return out.String(), nil
}

// The marks that a terminal sets around a paste, where it was asked to.
const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// pasted is a text as a terminal pastes it. Its lines end as the Enter key
// does; checkPaste has refused what could end the paste.
func pasted(text string, bracketed bool) []byte {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\r"), "\n", "\r")
	if bracketed {
		text = pasteBegin + text + pasteEnd
	}
	return []byte(text)
}

// checkPaste refuses a text that would be more than text to a terminal: with
// control characters it could end the paste and go on as keys.
func checkPaste(text string) error {
	if strings.ContainsFunc(text, steers) {
		return hub.Invalid("text", "a paste holds no control characters but tab and newline; send keys instead")
	}
	return nil
}

func steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
}

// plainPaste replaces what checkPaste refuses: a worker's prompt is handed over
// whatever its Task's text holds.
func plainPaste(text string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
