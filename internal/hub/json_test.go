package hub

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPlainJSON(t *testing.T) {
	for raw, want := range map[string]string{
		`{ "b" : [ 1 , 2.50e3 , null ] , "a" : { } }`: `{"b":[1,2.50e3,null],"a":{}}`,
		`"\u00e9\u003c<\/\ud83d\ude00"`:               `"é<</😀"`,
		`"\u0001\n\"\\"`:                              `"\u0001\n\"\\"`,
		`12345678901234567890`:                        `12345678901234567890`,
		``:                                            ``,
	} {
		got, err := PlainJSON(json.RawMessage(raw))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", raw, got, err, want)
		}
	}
	for _, raw := range []string{`{`, `{}{}`, `[1,]`, `nope`, `{"a"}`} {
		if got, err := PlainJSON(json.RawMessage(raw)); err == nil {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

// PlainJSON says the same, is never longer, and is its own result.
func TestPlainJSONSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := map[string]any{
			rapid.String().Draw(t, "name"): rapid.SliceOf(rapid.String()).Draw(t, "texts"),
			"n":                            rapid.Float64Range(-1e9, 1e9).Draw(t, "number"), "<": rapid.Bool().Draw(t, "flag"),
		}
		raw, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		short, err := PlainJSON(raw)
		if err != nil || len(short) > len(raw) {
			t.Fatalf("%s became %s: %v", raw, short, err)
		}
		var a, b any
		if json.Unmarshal(raw, &a) != nil || json.Unmarshal(short, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%s became %s", raw, short)
		}
		if again, err := PlainJSON(short); err != nil || string(again) != string(short) {
			t.Fatalf("%s became %s: %v", short, again, err)
		}
	})
}

// Reports that differ only in how their result is written are equal.
func TestReportsAreEqualByMeaning(t *testing.T) {
	sum := func(result string) string {
		return Report{Outcome: OutcomeSucceeded, Result: json.RawMessage(result)}.Sum("b")
	}
	if a := sum(`{"n":1,"t":"é<"}`); a != sum(`{ "t": "\u00e9\u003c", "n": 1 }`) || a == sum(`{"n":1.0,"t":"é<"}`) || a == sum(`{"n":1}`) || sum("") == sum(`""`) {
		t.Error("sums and meanings differ")
	}
	if strings.Contains(sameJSON(json.RawMessage(`{`)), "null") {
		t.Error("what is no JSON stands for itself")
	}
}
