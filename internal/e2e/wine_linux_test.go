package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	windowsBinVar = "WAVEHUB_WINDOWS_BIN" // a folder with wavehub.exe, from the module's root
	mingw         = "x86_64-w64-mingw32-gcc"
)

// wine is a Windows of this run's own: a prefix in a temporary folder and the
// server that all its processes hang on.
type wine struct {
	loader string
	prefix string
	exe    string // wavehub for Windows
}

// newWine makes the prefix and ends everything in it with the test.
func newWine(t *testing.T) *wine {
	t.Helper()
	bin := os.Getenv(windowsBinVar)
	if bin == "" {
		t.Skip(windowsBinVar + " names no build for Windows; make wine sets it")
	}
	w := &wine{loader: needed(t, "wine"), prefix: filepath.Join(t.TempDir(), "prefix")}
	needed(t, "wineserver")
	needed(t, mingw)
	exe, err := filepath.Abs(filepath.Join(moduleRoot, bin, "wavehub.exe"))
	must(t, err)
	w.exe = exe
	must(t, os.Mkdir(w.prefix, 0o700))
	w.serve(t)
	w.must(t, 2*time.Minute, exec.Command(w.loader, "wineboot", "-i"))
	w.addRandom(t)
	return w
}

// needed is the path of a program without which the test is skipped.
func needed(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("not run: %v", err)
	}
	return path
}

// serve starts the prefix's own server, which ends the prefix's processes when it
// is interrupted.
func (w *wine) serve(t *testing.T) {
	cmd := exec.Command("wineserver", "--foreground", "--persistent")
	cmd.Env = append(os.Environ(), w.env()...)
	must(t, cmd.Start())
	ended := begin(t, func() (struct{}, error) { return struct{}{}, cmd.Wait() })
	t.Cleanup(func() {
		must(t, cmd.Process.Signal(syscall.SIGINT))
		ended.get(t, 20*time.Second)
	})
}

func (w *wine) env() []string {
	return []string{"WINEPREFIX=" + w.prefix, "WINEARCH=win64", "WINEDEBUG=-all", "DISPLAY="}
}

// addRandom builds the library that this wine lacks.
func (w *wine) addRandom(t *testing.T) {
	t.Helper()
	dll := filepath.Join(w.prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	w.must(t, time.Minute, exec.Command(mingw, "-shared", "-Os", "-s", "-o", dll, filepath.Join("testdata", "wine", "bcryptprimitives.c"), "-ladvapi32"))
}

// must runs a command in the prefix's environment and returns what it printed. It
// gets no pipe, which what it leaves running would hold open.
func (w *wine) must(t *testing.T, limit time.Duration, cmd *exec.Cmd) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	defer out.Close()
	cmd.Env = append(os.Environ(), append(w.env(), cmd.Env...)...)
	cmd.Stdout, cmd.Stderr = out, out
	must(t, cmd.Start())
	stop := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() }) // it may just have ended
	defer stop.Stop()
	err = cmd.Wait()
	raw, rerr := os.ReadFile(out.Name())
	must(t, rerr)
	if err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, raw)
	}
	return string(raw)
}

// windowsPath is how Windows programs under wine call an absolute path.
func windowsPath(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }

// host makes the hub one of Windows: serve and every command line run there. Wine
// gives detached processes the outputs of the hub that started them.
func (w *wine) host(_ testing.TB, h *Hub) {
	h.via, h.bin, h.cli, h.lag = []string{w.loader}, w.exe, w.exe, time.Second
	h.env = append(h.env, append(w.env(), "WAVEHUB_HOME="+windowsPath(h.Home))...)
}

// windowsPackages have code of their own for Windows, or depend on how that
// differs.
var windowsPackages = []string{
	"./client", "./internal/agent", "./internal/capfile", "./internal/config", "./internal/daemon", "./internal/keystore",
	"./internal/peer", "./internal/proc", "./internal/safefile", "./internal/terminal", "./internal/worktree", "./relay/...",
}

// TestWine is the Windows build at work. What wine cannot show is in the README.
func TestWine(t *testing.T) {
	w := newWine(t)
	t.Run("Packages", w.testPackages)
	t.Run("Hub", w.testHub)
}

func (w *wine) testPackages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	args := append([]string{"test", "-count=1", "-timeout", "2m", "-overlay", deleteOverlay(t), "-exec", w.loader}, windowsPackages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = moduleRoot
	cmd.Env = []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=1", "CC=" + mingw}
	t.Log("\n" + w.must(t, 8*time.Minute, cmd))
}

// deleteOverlay has os.RemoveAll of the tests take the way of older Windows:
// wine 8 refuses the other with an error that Go takes for the file's.
func deleteOverlay(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	from := filepath.Join(strings.TrimSpace(string(root)), "src", "internal", "syscall", "windows", "at_windows.go")
	text, err := os.ReadFile(from)
	must(t, err)
	const off, on = "\nvar TestDeleteatFallback bool\n", "\nvar TestDeleteatFallback = true\n"
	if bytes.Count(text, []byte(off)) != 1 {
		t.Fatalf("%s has no %q", from, off)
	}
	to := filepath.Join(t.TempDir(), "at_windows.go")
	must(t, os.WriteFile(to, bytes.Replace(text, []byte(off), []byte(on), 1), 0o600))
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {from: to}})
	must(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	must(t, os.WriteFile(file, raw, 0o600))
	return file
}
