package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
	"github.com/wavehub/wavehub/internal/safefile"
)

const (
	envTurn   = "WAVEHUB_TURN_ID" // marks the processes of one turn
	turnGrace = 5 * time.Second   // between the polite and the forced end of a turn
	pipeDrain = 2 * time.Second   // how long what a turn left behind may hold its output open
	tailBytes = 16 << 10          // how much output stands for a report
)

// turn is one run of the command for a Dispatch. Its goroutine owns the note while
// it runs; the other fields say what the loop knows of it.
type turn struct {
	id     string // of the Dispatch
	note   note
	line   string        // the shell command; "" until the session_start is acknowledged
	cancel chan struct{} // closed when it is to end
	once   sync.Once

	mu     sync.Mutex
	closed bool     // the Dispatch has ended: there is nothing to report. guarded by mu
	mail   string   // the file that its mail is appended to, "" while it does not run. guarded by mu
	early  [][]byte // mail that came before that. guarded by mu
}

// maxEarly bounds the mail that is kept for a turn that has not begun.
const maxEarly = 1000

func newTurn(n note, line string) *turn {
	return &turn{id: n.id(), note: n, line: line, cancel: make(chan struct{})}
}

// verb says how the turn starts.
func (t *turn) verb() string {
	if t.note.State == started {
		return "is resumed"
	}
	return "begins"
}

func (t *turn) stop() { t.once.Do(func() { close(t.cancel) }) }

func (t *turn) stopped() bool {
	select {
	case <-t.cancel:
		return true
	default:
		return false
	}
}

// close notes that the Dispatch has ended.
func (t *turn) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

func (t *turn) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// tell appends a message to the file that the turn reads its mail from, now or
// when it begins.
func (t *turn) tell(m client.Message) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mail != "":
		return appendLine(t.mail, raw)
	case len(t.early) == maxEarly:
		return errors.New("too much mail has come before the turn began")
	}
	t.early = append(t.early, raw)
	return nil
}

func appendLine(path string, raw []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Close())
}

// ending is how a turn's process ended.
type ending struct {
	err  error // nil for exit code 0
	tail string
}

// play runs the turn's process to its end; a turn that is stopped is ended with
// all its processes. The note says started before anything runs.
func (l *attachLoop) play(ctx context.Context, t *turn) (ending, error) {
	self, err := proc.Self()
	if err != nil {
		return ending{}, err
	}
	t.note.State, t.note.TurnID, t.note.Process, t.note.Spawned = started, strings.TrimPrefix(string(hub.NewTerminalID()), hub.PrefixTerminal), self, false
	if err := l.notes.put(t.note); err != nil {
		return ending{}, err
	}
	dir := l.notes.private(t.note.TurnID)
	if err := l.furnish(t, dir); err != nil {
		return ending{}, errors.Join(err, os.RemoveAll(dir))
	}
	end, err := l.spawn(ctx, t, dir)
	t.mu.Lock()
	t.mail = ""
	t.mu.Unlock()
	return end, errors.Join(err, os.RemoveAll(dir))
}

// furnish makes the turn's private folder: its credential and its mail.
func (l *attachLoop) furnish(t *turn, dir string) error {
	if err := safefile.PrivateDir(dir); err != nil {
		return err
	}
	raw, err := capfile.Encode(capfile.File{
		URL: l.conn.URL, Fingerprint: l.conn.Fingerprint, Token: l.conn.Token.Reveal(),
		RunID: string(t.note.Start.Run), TaskID: string(t.note.Start.Task), DispatchID: t.id,
		WaveTaskID: t.note.Start.WaveRef.TaskToken(),
	})
	if err != nil {
		return err
	}
	mail := filepath.Join(dir, "mail.ndjson")
	if err := errors.Join(safefile.CreateExclusive(filepath.Join(dir, "dispatch.json"), raw, 0o600), safefile.CreateExclusive(mail, nil, 0o600), tellBackground(t.note.Start, dir)); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, raw := range t.early {
		if err := appendLine(mail, raw); err != nil {
			return err
		}
	}
	t.mail, t.early = mail, nil
	return nil
}

// backgroundName is the file of a turn with what its Task depends on.
const backgroundName = "dependencies.json"

// tellBackground writes that file, if there is something to tell.
func tellBackground(s hub.SessionStart, dir string) error {
	if s.Background == nil {
		return nil
	}
	raw, err := json.Marshal(s.Background)
	if err != nil {
		return err
	}
	return safefile.CreateExclusive(filepath.Join(dir, backgroundName), raw, 0o600)
}

func (l *attachLoop) spawn(ctx context.Context, t *turn, dir string) (ending, error) {
	out := &tail{max: tailBytes}
	cmd := shellCommand(t.line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = l.flags.dir, l.environment(t, dir), pipeDrain
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(l.prompt(t)), out, out
	proc.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return ending{err: err, tail: "the command could not be started"}, nil
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	if id, err := proc.Lookup(cmd.Process.Pid); err == nil { // one that has ended needs no record
		t.note.Process, t.note.Spawned = id, true
		if err := l.notes.put(t.note); err != nil {
			t.stop()
			l.app.note("wavehub: ending the turn of %s: %v", t.id, err)
		}
	}
	select {
	case err := <-waited:
		return ending{cleanly(err), out.String()}, nil
	case <-t.cancel:
	case <-l.hurried.ch:
	}
	err := proc.EndTree(context.WithoutCancel(ctx), t.note.tree(), turnGrace)
	if err != nil {
		return ending{}, fmt.Errorf("ending the turn of %s: %w", t.id, err)
	}
	return ending{cleanly(<-waited), out.String()}, nil
}

// cleanly passes over that somebody held the output open after the end.
func cleanly(err error) error {
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// tree is every process of the turn. Until its shell is known those that carry its
// mark are.
func (n note) tree() proc.Tree {
	return proc.Tree{Root: n.Process, WithRoot: n.Spawned, Key: envTurn, Value: n.TurnID}
}

// environment is this program's own without what is wavehub's, and the turn's.
func (l *attachLoop) environment(t *turn, dir string) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(strings.ToUpper(entry), "WAVEHUB_") {
			env = append(env, entry)
		}
	}
	s := t.note.Start
	env = append(env,
		"WAVEHUB_DISPATCH_ID="+string(s.Dispatch), "WAVEHUB_TASK_ID="+string(s.Task), "WAVEHUB_RUN_ID="+string(s.Run),
		"WAVEHUB_SESSION_ID="+s.Session, "WAVEHUB_BIN="+l.bin, envTurn+"="+t.note.TurnID,
		envDispatchFile+"="+filepath.Join(dir, "dispatch.json"), envMail+"="+filepath.Join(dir, "mail.ndjson"))
	if w := s.WaveRef; w != nil {
		env = append(env, "WAVEHUB_WAVE_ID="+string(w.Wave), "WAVEHUB_WAVE_TASK_ID="+w.Token)
	}
	if s.Background != nil {
		env = append(env, hub.EnvDependencies+"="+filepath.Join(dir, backgroundName))
	}
	if _, err := exec.LookPath("wavehub"); err != nil {
		env = append(env, "PATH="+os.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(l.bin))
	}
	return env
}

// prompt is what the turn reads: how to report, and behind it the Task's text with
// what that depends on.
func (l *attachLoop) prompt(t *turn) string {
	s := t.note.Start
	if l.flags.bare {
		return s.Spec()
	}
	return s.Preamble + "\nMail that comes for you while you work is appended to the file " + mailVariable() +
		", one JSON document on each line.\n\nThe task:\n\n" + strings.TrimRight(s.Prompt, "\n") + "\n"
}

func mailVariable() string {
	if runtime.GOOS == "windows" {
		return "%" + envMail + "%"
	}
	return "$" + envMail
}

// tail keeps the last bytes that are written to it. Safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
	max int
}

// Write implements io.Writer; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-t.max):]...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String is what was kept, as text that a message may carry.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return hub.PlainText(t.buf)
}
