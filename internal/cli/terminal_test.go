package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/config"
)

// A terminal that never had a Dispatch is its user's, and is his context; with a
// capability, or without the mark, nothing but the capability is used.
func TestOpenTerminalIsItsUsers(t *testing.T) {
	h := newHub(t)
	h.on("GET /v1/hub", 200, `{}`)
	path := h.enterDispatch()
	folder := filepath.Dir(path)
	capability, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(folder, config.OpenName)
	h.write(mark, "", 0o600)
	wavehub(t, "status", "--json").want(t, 0, `{}`)
	if got := h.last().head.Get("Authorization"); got != "Bearer whd_capability" {
		t.Errorf("with a capability: %s", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wavehub(t, "status", "--json").want(t, 0, `{}`)
	if head := h.last().head; head.Get("Authorization") != "Bearer whu_operator" || head.Get("Wavehub-Context") != "terminal:"+filepath.Base(folder) {
		t.Errorf("an open terminal: %v", head)
	}
	before := len(h.requests())
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	wavehub(t, "status").want(t, 4, "(invalid_token)")
	if n := len(h.requests()); n != before {
		t.Errorf("%d requests were sent without the mark", n-before)
	}
	h.write(path, string(capability), 0o600)
	wavehub(t, "status", "--json").want(t, 0, `{}`)
}

func TestTerminalReadRefusals(t *testing.T) {
	newHub(t)
	for _, args := range [][]string{
		{"--cursor", "5"}, {"--limit", "5"}, {"--raw", "--scrollback", "5"}, {"--raw", "--cursor", "-1"}, {"--scrollback", "-1"},
	} {
		wavehub(t, append([]string{"terminal", "read", exampleTerminal}, args...)...).want(t, 2, "(invalid_argument)")
	}
	for _, what := range []string{"", "text", "exit:x", "lunch"} {
		r := wavehub(t, "terminal", "wait", exampleTerminal, "--for", what)
		if r.code == 0 {
			t.Errorf("waiting for %q: %+v", what, r)
		}
	}
	wavehub(t, "terminal", "send", exampleTerminal, "--text", "a", "--file", "-").want(t, 2, "(invalid_argument)")
	wavehub(t, "terminal", "send", exampleTerminal).want(t, 2, "(invalid_argument)")
}

// Each answer has its exit code.
func TestTerminalExitCodes(t *testing.T) {
	h := newHub(t)
	at := "/v1/terminals/" + exampleTerminal
	const mutation = `"mutation":{"request_id":"req_x","replayed":false}`
	for state, code := range map[string]int{"sent": 0, "failed": 1, "outcome_unknown": 10} {
		h.on("POST "+at+"/input", 200, `{"terminal_id":"t","state":"`+state+`","bytes":1,"last_error":null,`+mutation+`}`)
		wavehub(t, "terminal", "send", exampleTerminal, "--enter").want(t, code)
	}
	for doc, code := range map[string]int{`"met":true`: 0, `"timed_out":true`: 7, `"met":false`: 1} {
		h.on("GET "+at+"/wait", 200, `{"terminal_id":"t",`+doc+`}`)
		wavehub(t, "terminal", "wait", exampleTerminal, "--for", "exit").want(t, code)
	}
	for state, code := range map[string]int{"closed": 0, "outcome_unknown": 10} {
		h.on("POST "+at+"/close", 200, `{"terminal_id":"t","state":"`+state+`","next_commands":[],`+mutation+`}`)
		wavehub(t, "terminal", "close", exampleTerminal).want(t, code)
	}
	for state, code := range map[string]int{"ready": 0, "failed": 1, "outcome_unknown": 10} {
		h.on("POST /v1/terminals", 201, `{"terminal":{"terminal_id":"t","dir":"/x"},"state":"`+state+`","next_commands":[],`+mutation+`}`)
		wavehub(t, "terminal", "create").want(t, code)
	}
}

func TestUnseen(t *testing.T) {
	numbered := func(from, to int, more ...string) (out []string) {
		for i := from; i <= to; i++ {
			out = append(out, fmt.Sprint("line ", i))
		}
		return append(out, more...)
	}
	for name, c := range map[string]struct{ before, now, want []string }{
		"first":                              {nil, numbered(1, 2), numbered(1, 2)},
		"nothing":                            {numbered(1, 5), numbered(1, 5), nil},
		"more":                               {numbered(1, 5), numbered(1, 7), numbered(6, 7)},
		"a line goes on":                     {numbered(1, 5, "$ "), numbered(1, 5, "$ ls", "a"), []string{"$ ls", "a"}},
		"the screen moved":                   {numbered(1, 9), numbered(4, 12), numbered(10, 12)},
		"it moved and the last line changed": {numbered(1, 9, "50%"), numbered(3, 9, "100%", "done"), []string{"100%", "done"}},
		"redrawn":                            {numbered(1, 3), []string{"line 1", "x", "line 3"}, []string{"x", "line 3"}},
		"cleared":                            {numbered(1, 3), nil, nil},
		"all is new":                         {numbered(1, 9), numbered(50, 58), numbered(50, 58)},
	} {
		if got := unseen(c.before, c.now, 3); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, "|"), strings.Join(c.want, "|"))
		}
	}
}
