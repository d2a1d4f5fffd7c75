package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func fileOf(t *testing.T, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "config", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestSetMakesTheFile(t *testing.T) {
	dir := home(t, "")
	path, err := Set(KeyListen, "0.0.0.0:7443")
	if err != nil || path != filepath.Join(dir, "config", "config.yaml") {
		t.Fatalf("%s %v", path, err)
	}
	if got := fileOf(t, dir); got != "listen: 0.0.0.0:7443\n" {
		t.Errorf("the file is %q", got)
	}
	for key, value := range map[string]string{
		KeyAdvertise: "a.example:7443, b.example:7443", KeyAPIRemote: "true", KeyName: "mac", KeyLogLevel: "debug", keyWorkers: "7", perAgent + "co.dex": "2",
	} {
		if _, err := Set(key, value); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	c := load(t, nil)
	if c.Listen != "0.0.0.0:7443" || len(c.Advertise) != 2 || !c.APIRemote || c.Name != "mac" || c.LogLevel != "debug" || c.Limits.Workers != 7 || c.Limits.PerAgent["co.dex"] != 2 {
		t.Errorf("%+v of\n%s", c, fileOf(t, dir))
	}
}

func TestSetKeepsTheRest(t *testing.T) {
	dir := home(t, `# How this host is used.
name: mac # what peers see

# Behind the firewall.
listen: 127.0.0.1:7443 # for now
agents:
  mine:
    command: [mine, --fast] # ours
limits:
  # of all agents
  workers: 3
`)
	for _, kv := range [][2]string{{KeyListen, "0.0.0.0:1"}, {keyWorkers, "4"}, {perAgent + "mine", "1"}} {
		if _, err := Set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := `# How this host is used.
name: mac # what peers see
# Behind the firewall.
listen: 0.0.0.0:1 # for now
agents:
  mine:
    command: [mine, --fast] # ours
limits:
  # of all agents
  workers: 4
  per_agent:
    mine: 1
`
	if got := fileOf(t, dir); got != want {
		t.Errorf("the file is\n%s", got)
	}
}

func TestSetKeepsAFileOfCommentsOnly(t *testing.T) {
	dir := home(t, "# nothing yet\n")
	if _, err := Set(KeyName, "mac"); err != nil {
		t.Fatal(err)
	}
	if got := fileOf(t, dir); !strings.HasPrefix(got, "# nothing yet\n") || !strings.Contains(got, "\nname: mac\n") {
		t.Errorf("the file is %q", got)
	}
}

func TestSetRefusesAndWritesNothing(t *testing.T) {
	const text = "name: mac\n"
	for name, c := range map[string]struct {
		key, value, file string
		given            bool
	}{
		"a key":            {"nmae", "x", text, true},
		"agents":           {"agents.mine.command", "x", text, true},
		"an address":       {KeyListen, "nowhere", text, true},
		"an empty value":   {KeyListen, "", text, true},
		"a name":           {KeyName, "two words", text, true},
		"a number":         {keyWorkers, "many", text, true},
		"a negative limit": {keyWorkers, "-1", text, true},
		"a switch":         {KeyAPIRemote, "perhaps", text, true},
		"a level":          {KeyLogLevel, "loud", text, true},
		"no agent's name":  {perAgent, "1", text, true},
		"a broken file":    {KeyName, "x", "name: [\n", false},
		"an unknown key":   {KeyName, "x", "nmae: x\n", false},
		"a list":           {KeyName, "x", "- a\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := home(t, c.file)
			_, err := Set(c.key, c.value)
			e, ok := errors.AsType[*InvalidError](err)
			if !ok || e.Given != c.given {
				t.Errorf("%v", err)
			}
			if got := fileOf(t, dir); got != c.file {
				t.Errorf("the file is %q", got)
			}
		})
	}
}

// TestSetLooksAtTheFileAlone: a variable of this shell is not what the hub will
// have.
func TestSetLooksAtTheFileAlone(t *testing.T) {
	dir := home(t, "")
	t.Setenv("WAVEHUB_LISTEN", "nowhere")
	if _, err := Set(KeyName, "mac"); err != nil {
		t.Error(err)
	}
	if got := fileOf(t, dir); got != "name: mac\n" {
		t.Errorf("the file is %q", got)
	}
}

// TestSetFollowsALink: people keep their files elsewhere.
func TestSetFollowsALink(t *testing.T) {
	dir := home(t, "name: mac\n")
	link, target := filepath.Join(dir, "config", "config.yaml"), filepath.Join(dir, "kept.yaml")
	if err := os.Rename(link, target); err != nil {
		t.Fatal(err)
	}
	err := os.Symlink(target, link)
	if _, lerr := os.Readlink(link); err != nil || lerr != nil {
		t.Skipf("no link can be made here: %v, %v", err, lerr)
	}
	if _, err := Set(KeyName, "other"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if raw, rerr := os.ReadFile(target); err != nil || rerr != nil || info.Mode()&os.ModeSymlink == 0 || string(raw) != "name: other\n" {
		t.Errorf("%v %v %q", err, rerr, raw)
	}
}
