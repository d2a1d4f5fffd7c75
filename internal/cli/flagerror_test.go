package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wavehub/wavehub/client"
)

// parserWords are what parsers of the standard library and of the flags say.
var parserWords = regexp.MustCompile(`strconv|parse error|invalid (argument|syntax|duration)|unknown flag|needs an argument|time:|bare "|unmarshal`)

// allFlags calls fn with every verb and each of its flags, those of all verbs
// included.
func allFlags(t *testing.T, fn func(words []string, f *pflag.Flag)) {
	t.Helper()
	root, n := (&app{}).root(), 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		if cmd.HasSubCommands() || cmd.DisableFlagParsing || cmd.Name() == "help" {
			return
		}
		cmd.InitDefaultHelpFlag()
		words := strings.Fields(cmd.CommandPath())[1:]
		visit := func(f *pflag.Flag) { n++; fn(words, f) }
		cmd.LocalFlags().VisitAll(visit)
		cmd.InheritedFlags().VisitAll(visit)
	}
	walk(root)
	if n < 200 {
		t.Fatalf("only %d flags were found", n)
	}
}

// TestBadValuesAreToldInOurWords: of every flag of every verb.
func TestBadValuesAreToldInOurWords(t *testing.T) {
	newHub(t)
	bad := map[string]string{"bool": "perhaps", "int": "1.5", "int64": "1.5", "duration": "soon", "stringSlice": `a"b`}
	allFlags(t, func(words []string, f *pflag.Flag) {
		kind := f.Value.Type()
		if kind == "string" || kind == "stringArray" {
			return // they take any text
		}
		if bad[kind] == "" || flagWants[kind] == "" {
			t.Errorf("%q --%s: nothing is said of values of type %s", words, f.Name, kind)
			return
		}
		refusedFlag(t, f.Name, append(words, "--"+f.Name+"="+bad[kind])...)
	})
}

func TestMissingValuesAndFlagsAreToldInOurWords(t *testing.T) {
	newHub(t)
	allFlags(t, func(words []string, f *pflag.Flag) {
		if f.NoOptDefVal == "" {
			refusedFlag(t, f.Name, append(words, "--"+f.Name)...)
		}
	})
	refusedFlag(t, "nope", "run", "list", "--nope")
	refusedFlag(t, "x", "run", "list", "-x")
	refusedFlag(t, "", "run", "list", "--=x")
}

// refusedFlag demands a usage error about the flag.
func refusedFlag(t *testing.T, name string, args ...string) {
	t.Helper()
	r := wavehub(t, append([]string{"--json"}, args...)...)
	var p client.Problem
	if err := json.Unmarshal([]byte(r.errout), &p); err != nil || r.code != 2 || r.out != "" || p.Code != "invalid_argument" || p.Field != name {
		t.Fatalf("%q: exit %d, %v, stdout %q, stderr %q", args, r.code, err, r.out, r.errout)
	}
	if parserWords.MatchString(p.Detail) {
		t.Errorf("%q: %s", args, p.Detail)
	}
}
