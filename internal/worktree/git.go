package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// Defaults of Config.
const (
	DefaultTimeout   = 2 * time.Minute
	DefaultOutputCap = 8 << 20
)

const (
	stderrCap = 16 << 10
	drainTime = 2 * time.Second
)

// Config says which git to run and within which limits.
type Config struct {
	// Path of the git program, absolute; empty looks it up in PATH until it is
	// found.
	Path string
	// Timeout of one git command, after which its process group is killed.
	Timeout time.Duration
	// OutputCap of one git command's standard output, in bytes.
	OutputCap int
}

// Git runs git commands. It is safe for concurrent use; changes to one
// repository are made one after the other.
type Git struct {
	timeout time.Duration
	cap     int

	mu    sync.Mutex
	path  string                   // "" until git was found; guarded by mu
	locks map[string]chan struct{} // by common git directory; guarded by mu
}

// ErrOutputTooLarge is returned when a command wrote more than OutputCap.
var ErrOutputTooLarge = errors.New("git wrote more than is allowed")

// Error is a git command that did not succeed. Code is its exit code, -1 when
// it was killed or never ran; Stderr is fit to be shown; Err is the cause
// (context.DeadlineExceeded for the time limit, ErrOutputTooLarge for the cap).
type Error struct {
	Command string
	Code    int
	Stderr  string
	Err     error
}

// Error returns the command, what git said and the cause.
func (e *Error) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("git %s: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("git %s: %v: %s", e.Command, e.Err, e.Stderr)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewGit checks the limits; zero limits take the defaults. Git need not be there:
// see program.
func NewGit(cfg Config) (*Git, error) {
	if cfg.Timeout < 0 || cfg.OutputCap < 0 {
		return nil, errors.New("git limits must not be negative")
	}
	if cfg.Path != "" && !filepath.IsAbs(cfg.Path) {
		return nil, fmt.Errorf("the path of git, %q, is not absolute", cfg.Path)
	}
	g := &Git{path: cfg.Path, timeout: cfg.Timeout, cap: cfg.OutputCap, locks: map[string]chan struct{}{}}
	if g.timeout == 0 {
		g.timeout = DefaultTimeout
	}
	if g.cap == 0 {
		g.cap = DefaultOutputCap
	}
	return g, nil
}

// program is the absolute path of git. A machine that has none is
// capability_unsupported, until it has one: folders outside of repositories need
// no git.
func (g *Git) program() (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.path != "" {
		return g.path, nil
	}
	found, err := exec.LookPath("git")
	if err == nil && !filepath.IsAbs(found) {
		err = exec.ErrDot
	}
	if err != nil {
		return "", &hub.Error{
			Code: hub.CodeCapabilityUnsupported, Message: "this needs git, and the hub on this machine finds none", Err: err,
			Hint: "install git where that hub's PATH has it, or use a folder that is in no repository",
		}
	}
	g.path = found
	return found, nil
}

// Version returns what `git --version` says, such as "2.39.5".
func (g *Git) Version(ctx context.Context) (string, error) {
	out, err := g.run(ctx, call{args: []string{"--version"}})
	return strings.TrimPrefix(strings.TrimSpace(out), "git version "), err
}

// record names a repository explicitly, so that git discovers nothing.
type record struct {
	gitDir, workTree string
}

// call is one git command. Without a record git discovers the repository from
// dir, of which the owner is then not questioned.
type call struct {
	at     record
	dir    string
	stdin  string
	config []setting
	env    []string
	args   []string
	keep   *os.File // a lock that the command holds as long as it lives
	hooks  bool     // the repository's hooks run, as the user asked
}

type setting struct{ key, value string }

func (g *Git) run(ctx context.Context, c call) (string, error) {
	program, err := g.program()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, c.argv()...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.folder(), c.environment(), drainTime
	cmd.ExtraFiles = keeps(c.keep)
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	out := &cappedBuffer{limit: g.cap, full: cancel}
	errs := &cappedBuffer{limit: stderrCap, discard: true}
	cmd.Stdout, cmd.Stderr = out, errs
	err = runTree(cmd)
	if err == nil && !out.over {
		return out.buf.String(), nil
	}
	return "", c.failure(ctx, cmd, err, out.over, errs.buf.String())
}

func (c call) argv() []string {
	var argv []string
	if c.at.gitDir != "" {
		argv = append(argv, "--git-dir="+c.at.gitDir)
	}
	if c.at.workTree != "" {
		argv = append(argv, "--work-tree="+c.at.workTree)
	}
	return append(argv, c.args...)
}

func (c call) folder() string {
	if c.dir != "" {
		return c.dir
	}
	return c.at.gitDir
}

func (c call) failure(ctx context.Context, cmd *exec.Cmd, err error, over bool, stderr string) error {
	e := &Error{Command: c.args[0], Code: -1, Stderr: safetext.Line(strings.TrimSpace(stderr), 2000), Err: err}
	if cmd.ProcessState != nil {
		e.Code = cmd.ProcessState.ExitCode()
	}
	switch {
	case over:
		e.Err = ErrOutputTooLarge
	case ctx.Err() != nil:
		e.Err = ctx.Err()
	}
	return e
}

// exitedWith reports whether git ended by itself with the code.
func exitedWith(err error, code int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// said reports whether git failed with the text in its message.
func said(err error, text string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && strings.Contains(e.Stderr, text)
}

// cappedBuffer keeps at most limit bytes. Beyond them it drops what comes, or
// fails the write and calls full.
type cappedBuffer struct {
	buf           bytes.Buffer // not embedded: its ReadFrom would go round Write
	limit         int
	discard, over bool
	full          context.CancelFunc
}

func (b *cappedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.buf.Len()
	if len(p) <= room {
		return b.buf.Write(p)
	}
	b.over = true
	if b.discard {
		b.buf.Write(p[:room])
		return len(p), nil
	}
	b.full()
	return 0, ErrOutputTooLarge
}
