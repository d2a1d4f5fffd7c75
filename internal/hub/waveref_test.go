package hub

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWaveRefOfAStart(t *testing.T) {
	ref := &WaveRef{"w1", "T001"}
	if ref.Session() != "w1--T001" || ref.Channel() != "wave.w1.task.T001" || ref.TaskToken() != "T001" || (*WaveRef)(nil).TaskToken() != "" {
		t.Errorf("%q, %q, %q", ref.Session(), ref.Channel(), ref.TaskToken())
	}
	for name, c := range map[string]struct {
		spec StartSpec
		want string
	}{
		"plain":               {StartSpec{}, "dispatch_1"},
		"a session":           {StartSpec{Session: "s"}, "s"},
		"a wave":              {StartSpec{Wave: ref}, "w1--T001"},
		"a wave of a session": {StartSpec{Wave: ref, Session: "s"}, "s"},
	} {
		if got := c.spec.SessionOf("dispatch_1"); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWaveRefIsChecked(t *testing.T) {
	placed := StartSpec{Worktree: "path:/x", Agent: "sh"}
	attached := StartSpec{Worker: "w-1"}
	for name, c := range map[string]struct {
		ref   WaveRef
		field string
	}{
		"fine":      {WaveRef{"w1", "a"}, ""},
		"no wave":   {WaveRef{"", "a"}, "wave_id"},
		"no token":  {WaveRef{"w1", ""}, "wave_task_id"},
		"a subject": {WaveRef{"w1.task", "a"}, "wave_id"},
		"too long":  {WaveRef{"w1", strings.Repeat("a", MaxWaveToken+1)}, "wave_task_id"},
		"joined":    {WaveRef{"w1", "a--b"}, "wave_task_id"},
	} {
		for _, spec := range []StartSpec{placed, attached} {
			spec.Wave = &c.ref
			err := spec.Check(false)
			if e, _ := err.(*Error); (err == nil) != (c.field == "") || e != nil && e.Field != c.field {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, spec := range []StartSpec{placed, attached} {
		if spec.Session = strings.Repeat("x", MaxSessionBytes+1); !IsCode(spec.Check(false), CodeTooLarge) {
			t.Error("a session's id of any length is taken")
		}
	}
}

// The token of a wave's task stands for its Task, and nothing else does.
func TestTokenStandsForTheTask(t *testing.T) {
	in := StartSpec{Wave: &WaveRef{"w1", "a"}}
	for name, want := range map[TaskID]TaskID{"a": "task_1", "task_1": "task_1", "b": "b", "": "", "A": "A"} {
		if got := in.TaskNamed(name, "task_1"); got != want {
			t.Errorf("%q is %q", name, got)
		}
	}
	for _, name := range []TaskID{"", "a"} {
		if got := (StartSpec{}).TaskNamed(name, "task_1"); got != name {
			t.Errorf("without a wave %q is %q", name, got)
		}
	}
}

func TestMailNamesTheWave(t *testing.T) {
	ref := &WaveRef{"w1", "a"}
	for name, v := range map[string]any{
		"session_start": SessionStart{Session: ref.Session(), WaveMark: ref.Mark()},
		"control":       SessionControl{Session: ref.Session(), WaveMark: ref.Mark()},
	} {
		raw, err := json.Marshal(v)
		if err != nil || !strings.Contains(string(raw), `"wave_id":"w1","wave_task_id":"a","channel":"wave.w1.task.a"`) {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
		var back SessionControl
		if err := json.Unmarshal(raw, &back); err != nil || back.WaveRef == nil || *back.WaveRef != *ref || back.Session != "w1--a" {
			t.Errorf("%s is read as %+v, %v", name, back, err)
		}
	}
	raw, err := json.Marshal(SessionStart{WaveMark: (*WaveRef)(nil).Mark()})
	if err != nil || strings.Contains(string(raw), "wave") || strings.Contains(string(raw), "channel") {
		t.Errorf("of no wave: %s, %v", raw, err)
	}
}
