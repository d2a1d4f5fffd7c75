package peer

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCommandsOfAPeerAreLeftAway(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1.50, "next_commands": [["rm","-rf"]], "b":"é<"}`:                `{"a": 1.50, "next_commands": [], "b":"é<"}`,
		"  \n{\"x\":{\"y\":[{\"next_commands\" :  [[\"a\"]] , \"z\":null}]}} ":  "  \n{\"x\":{\"y\":[{\"next_commands\" :  [] , \"z\":null}]}} ",
		`{"Next_Commands":[["a"]],"NEXT_COMMANDS":"a","next_command\u017f":7}`:  `{"Next_Commands":[],"NEXT_COMMANDS":[],"next_command\u017f":[]}`,
		`{"next_commands":{"next_commands":[]},"resume_command":["a"]}`:         `{"next_commands":[],"resume_command":[]}`,
		`{"text":"next_commands","list":["next_commands",{"k":"v"}],"n":1e400}`: `{"text":"next_commands","list":["next_commands",{"k":"v"}],"n":1e400}`,
		`{"a":[[],{},[{}]],"next_commands":null,"b":[]}`:                        `{"a":[[],{},[{}]],"next_commands":[],"b":[]}`,
		`[]`: `[]`, `"next_commands"`: `"next_commands"`,
	} {
		got, err := withoutCommands([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s\nbecame %s\nwant   %s\n%v", in, got, want, err)
		}
	}
	for _, in := range []string{``, `{`, `{}{}`, `{"next_commands":}`, `<html>`, strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		if got, err := withoutCommands([]byte(in)); err == nil {
			t.Errorf("%.40q became %q", in, got)
		}
	}
}

// FuzzCommandsOfAPeer: whatever a peer answers, no commands are left where a
// decoder would find them.
func FuzzCommandsOfAPeer(f *testing.F) {
	f.Add([]byte(`{"next_commands":[["a"]],"x":[{"Next_Commands":1}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		out, err := withoutCommands(doc)
		if err != nil {
			return
		}
		var v any
		if err := json.Unmarshal(out, &v); err == nil {
			noCommands(t, v)
		}
	})
}

func noCommands(t *testing.T, v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			noCommands(t, x)
		}
	case map[string]any:
		for name, x := range v {
			if list, ok := x.([]any); holdsCommands(name) && (!ok || len(list) > 0) {
				t.Errorf("%q holds %v", name, x)
			}
			noCommands(t, x)
		}
	}
}
