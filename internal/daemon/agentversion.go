package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/proc"
	"github.com/wavehub/wavehub/internal/safetext"
)

// Limits of a command that prints a version.
const (
	versionTime  = 5 * time.Second
	versionDrain = 2 * time.Second
	versionCap   = 4 << 10
)

// Version runs the agent's version command and returns the first line that it
// printed, fit to be shown; "" for an agent without such a command. The command
// has no input and the worker's environment; after five seconds it is killed
// with everything that it started.
func (a agents) Version(ctx context.Context, name string) (string, error) {
	argv, err := a.table.VersionCommand(name)
	if err != nil || argv == nil {
		return "", err
	}
	l, err := a.table.Lookup(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	out := &head{limit: versionCap}
	cmd.Dir, cmd.Env, cmd.WaitDelay, cmd.Stdout, cmd.Stderr = os.TempDir(), a.environment(l.Env), versionDrain, out, out
	cmd.Cancel = func() error { return endTree(cmd.Process.Pid) }
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("asking agent %s for its version: %w", name, errors.Join(ctx.Err(), err))
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out.kept)), "\n")
	return safetext.Line(strings.TrimSpace(line), 200), nil
}

// KnownVersion is Version, remembered for as long as the program's file is the same.
func (a agents) KnownVersion(ctx context.Context, name string) (string, error) {
	argv, err := a.table.VersionCommand(name)
	if err != nil || argv == nil {
		return "", err
	}
	info, err := os.Stat(argv[0])
	if err != nil {
		return "", err
	}
	file := programFile{name, argv[0], info.Size(), info.ModTime()}
	if v, ok := a.known.of(file); ok {
		return v, nil
	}
	v, err := a.Version(ctx, name)
	if err == nil {
		a.known.note(file, v)
	}
	return v, err
}

// programFile is the file of an agent's program as it was.
type programFile struct {
	agent, path string
	size        int64
	changed     time.Time
}

// versions remembers the version of each agent. Safe for concurrent use; the zero
// value is ready.
type versions struct {
	mu   sync.Mutex
	last map[string]knownVersion // by agent. guarded by mu
}

type knownVersion struct {
	programFile
	version string
}

func (v *versions) of(f programFile) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k, ok := v.last[f.agent]
	return k.version, ok && k.programFile == f
}

func (v *versions) note(f programFile, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last = map[string]knownVersion{}
	}
	v.last[f.agent] = knownVersion{f, version}
}

// endTree kills a child that has not been waited for, and all below it.
func endTree(pid int) error {
	root, err := proc.Lookup(pid)
	if errors.Is(err, proc.ErrGone) {
		return os.ErrProcessDone
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionDrain)
	defer cancel()
	return proc.EndTree(ctx, proc.Tree{Root: root, WithRoot: true}, 0)
}

// head keeps the beginning of what is written and drops the rest.
type head struct {
	kept  []byte
	limit int
}

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), h.limit-len(h.kept))]...)
	return len(p), nil
}
