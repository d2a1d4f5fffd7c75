//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// NewRepo makes a git repository with one commit that holds the files.
func NewRepo(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	must(t, os.Mkdir(dir, 0o700))
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "first"}} {
		git(t, dir, args...)
	}
	return dir
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.org"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// Pair makes worker serve home, inside root. via replaces the worker's URL,
// for a proxy before it; "" is direct.
func Pair(t testing.TB, home, worker *Hub, root, via string) {
	t.Helper()
	invite := get[api.InviteResult](t, worker.Caller(), "peer", "invite", "--allow-repo", root, "--ttl", "10m")
	file := filepath.Join(t.TempDir(), "code")
	must(t, os.WriteFile(file, []byte(*invite.Invite.Code+"\n"), 0o600))
	if via == "" {
		via = worker.Endpoint().URL
	}
	added := get[api.PeerResult](t, home.Caller(), "peer", "add", worker.Name, via, "--code-file", file)
	if added.Peer.State != "active" {
		t.Fatalf("the peer is %s", added.Peer.State)
	}
}

// Pairing is a home and a worker hub, paired, and a folder granted to home.
type Pairing struct {
	Home, Worker *Hub
	Root         string
}

// NewPair starts and pairs two hubs.
func NewPair(t testing.TB) Pairing {
	t.Helper()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	Pair(t, p.Home, p.Worker, p.Root, "")
	return p
}

// Place is the arguments that start sh on the worker hub, in the granted
// folder.
func (p Pairing) Place() []string {
	return []string{"--on", p.Worker.Name, "--worktree", "path:" + p.Root, "--agent", "sh"}
}

// gate holds shell scripts until it is opened. It outlives hubs.
type gate struct {
	path string
	file *os.File
}

func newGate(t testing.TB) gate {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	must(t, syscall.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return gate{path: path, file: f}
}

// wait is shell text that waits for the gate.
func (g gate) wait() string { return "read -r _ < '" + g.path + "'\n" }

// open lets n scripts pass.
func (g gate) open(t testing.TB, n int) {
	t.Helper()
	for range n {
		_, err := g.file.WriteString("\n")
		must(t, err)
	}
}

const done = `"$WAVEHUB_BIN" done `

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func itoa(n int) string { return strconv.Itoa(n) }
