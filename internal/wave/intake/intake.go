package intake

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// Formats of files of tasks.
const (
	FormatAuto       = "auto" // by content, then by name
	FormatTasksJSON  = "tasks-json"
	FormatSpecKit    = "spec-kit"
	FormatGSD        = "gsd"
	FormatTaskmaster = "taskmaster"
)

const formats = FormatTasksJSON + ", " + FormatSpecKit + ", " + FormatGSD + " or " + FormatTaskmaster

// Read reads the tasks of a file in the order in which they are declared. name is
// the file's, which auto looks at where the content does not tell; "" is auto too.
// Findings and warnings are in the order of their lines and bounded, a last one
// then says how many more there are; what they name is never nil. Tasks may share
// lists, which nobody writes to. The same text gives the same answer.
//
// The caller bounds the text. At most hub.MaxWaveTasks+1 tasks are read, and
// nothing behind them: the caller refuses more than hub.MaxWaveTasks.
func Read(format, name, text string) (tasks []hub.WaveEntry, findings, warnings []hub.Finding) {
	s := &sheet{}
	text = strings.TrimPrefix(text, "\ufeff")
	if at, what := notText(text); what != "" {
		s.invalid(1+strings.Count(text[:at], "\n"), "the file holds %s: it is no text in UTF-8", what)
		return s.done()
	}
	if format == "" || format == FormatAuto {
		format = detect(name, text)
	}
	if prose := format == FormatSpecKit || format == FormatGSD; prose && len(text) > maxProse {
		s.invalid(1, "the file has %d bytes, and a plan of %s at most %d", len(text), format, maxProse)
		return s.done()
	}
	switch format {
	case FormatTasksJSON:
		readTasksJSON(s, text)
	case FormatSpecKit:
		readSpecKit(s, text)
	case FormatGSD:
		readGSD(s, name, text)
	case FormatTaskmaster:
		readTaskmaster(s, text)
	case "":
		s.invalid(1, "the file is none that is known; say its format: %s", formats)
	default:
		s.invalid(1, "%.64q is no format; there are %s", format, formats)
	}
	return s.done()
}

// notText finds the first byte that no text has.
func notText(text string) (at int, what string) {
	nul := strings.IndexByte(text, 0)
	if utf8.ValidString(text) {
		if nul < 0 {
			return 0, ""
		}
		return nul, "a NUL character"
	}
	for at, r := range text {
		if at == nul {
			return at, "a NUL character"
		}
		if _, size := utf8.DecodeRuneInString(text[at:]); r == utf8.RuneError && size == 1 {
			return at, fmt.Sprintf("the byte 0x%02x", text[at])
		}
	}
	return 0, ""
}
