package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// terminalVar marks every process of a terminal; its value is the id.
const terminalVar = "WAVEHUB_TERMINAL_ID"

const (
	drainLimit   = 2 * time.Second        // for output that others still hold open
	closeLimit   = 500 * time.Millisecond // for the reader to notice the close
	recordLimit  = time.Minute            // for an exit record that cannot be written
	recordRetry  = 500 * time.Millisecond
	outputBuffer = 32 << 10
	leanPercent  = 25 // of garbage on top of what a supervisor keeps
	leanProcs    = 2  // the output, and a client
)

// announcement is the one line that a supervisor writes to its standard
// output, when the spawn record is durable or the start has failed.
type announcement struct {
	Incarnation *hub.Incarnation `json:"incarnation,omitempty"`
	Error       string           `json:"error,omitempty"`
}

// supervisor runs one process.
type supervisor struct {
	dir    string
	spec   launch
	self   proc.Identity
	io     *stdio
	keys   *keyboard // nil for pipes
	cgroup string    // of the process; empty where there can be none
	proc   *process
	output *output
	ender  *ender
	server *server
	inc    hub.Incarnation
	copied chan struct{} // closed when the output is read to its end
	leave  func() error  // the index of supervisors
}

// Supervise is the body of the hidden verb: it starts the process that
// dir/spec.json describes, announces that on standard output, keeps output and
// exit status in dir, serves the endpoint, and returns when the process and
// its strays are gone. It needs a process of its own: it takes over signal
// handling and the waiting for all children. The end of ctx does not end it,
// nor do signals; only a kill command ends the tree.
func Supervise(ctx context.Context, dir string) (err error) {
	ctx = context.WithoutCancel(ctx)
	var spec launch
	found, err := load(dir, specFile, &spec)
	if err != nil {
		return errors.Join(err, announce(announcement{Error: err.Error()}))
	}
	if !found {
		err = fmt.Errorf("there is no %s in %s", specFile, dir)
		return errors.Join(err, announce(announcement{Error: err.Error()}))
	}
	s := &supervisor{dir: dir, spec: spec, copied: make(chan struct{}), leave: func() error { return nil }}
	defer func() { err = errors.Join(err, s.leave()) }()
	defer s.ungroup()
	if err := s.start(ctx); err != nil {
		record := Exit{Nonce: spec.Nonce, At: hub.MicrosOf(time.Now()), Error: err.Error()}
		return errors.Join(err, store(dir, exitFile, record), announce(announcement{Error: err.Error()}))
	}
	// A hub that does not listen any more finds the spawn record.
	if err := announce(announcement{Incarnation: &s.inc}); err != nil {
		fmt.Fprintln(os.Stderr, "announcing the start:", err)
	}
	lean()
	return s.run(ctx)
}

// lean gives back what the start of the whole program took, and what grows with
// the machine's processors: there is one supervisor per terminal.
func lean() {
	runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), leanProcs))
	debug.SetGCPercent(leanPercent)
	debug.FreeOSMemory()
}

// announce writes the one line and closes standard output.
func announce(a announcement) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(raw, '\n'))
	return errors.Join(err, os.Stdout.Close())
}

// start brings everything up to the durable spawn record, or leaves no process.
func (s *supervisor) start(ctx context.Context) (err error) {
	if err := shield(); err != nil {
		return err
	}
	if s.self, err = proc.Self(); err != nil {
		return err
	}
	if s.output, err = newOutput(filepath.Join(s.dir, outputDir), s.spec.OutputCap); err != nil {
		return err
	}
	listener, err := listen(s.spec.Endpoint)
	if err != nil {
		return fmt.Errorf("opening the endpoint: %w", err)
	}
	if err := s.spawn(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.ender = &ender{tree: s.proc}
	s.server = newServer(listener, s.inc, filepath.Join(s.dir, outputDir), s.ender)
	s.output.written = s.server.wake
	if s.io.pty != nil {
		s.keys = newKeyboard(s.io.pty) // ended by settle
		s.server.live = &live{dir: s.dir, pty: s.io.pty, keys: s.keys, size: *s.spec.PTY}
	}
	return nil
}

// spawn claims the launch, starts the process and makes that durable.
func (s *supervisor) spawn(ctx context.Context) error {
	s.group()
	won, err := take(s.dir, claim{Supervisor: &s.self, Cgroup: s.cgroup})
	if err != nil {
		return err
	}
	if !won {
		return errors.New("the hub gave this launch up")
	}
	leave, err := enlist(filepath.Dir(s.dir), entry{Terminal: s.spec.Terminal, Supervisor: s.self})
	if err != nil {
		return err
	}
	s.leave = leave
	if s.io, err = newStdio(s.spec.LaunchSpec); err != nil {
		return fmt.Errorf("opening the process's files: %w", err)
	}
	if s.proc, err = startProcess(s.spec.LaunchSpec, s.self, s.io, s.cgroup); err != nil {
		return errors.Join(fmt.Errorf("starting the process: %w", err), s.io.close())
	}
	id := s.proc.id
	s.inc = hub.Incarnation{Terminal: s.spec.Terminal, Nonce: s.spec.Nonce, PID: id.PID, StartedAt: id.StartedAt, BootID: id.BootID}
	err = errors.Join(s.io.started(), store(s.dir, spawnFile, spawn{Incarnation: s.inc, Supervisor: s.self}))
	if err != nil {
		return errors.Join(err, s.proc.end(ctx, 0), s.io.close())
	}
	return nil
}

// group makes a cgroup for the process, or leaves it where the supervisor is.
func (s *supervisor) group() {
	dir, err := proc.NewGroup("wavehub-" + string(s.spec.Terminal))
	if err != nil {
		fmt.Fprintln(os.Stderr, "the process gets no cgroup of its own:", err)
		return
	}
	s.cgroup = dir
}

// ungroup removes the cgroup. One that has a process left stays for Remove.
func (s *supervisor) ungroup() {
	if s.cgroup == "" {
		return
	}
	if err := proc.RemoveGroup(s.cgroup); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// run serves until the process has ended and everybody connected knows.
func (s *supervisor) run(ctx context.Context) error {
	go s.copyOutput() // ended by settleOutput
	fed := make(chan struct{})
	go s.feed(fed) // ended by settleOutput, which closes the input
	s.server.start(ctx)
	status := <-s.proc.exit
	record := s.exitRecord(status)
	record.Residual = s.settle(ctx)
	if lost, err := s.output.result(); err != nil {
		record.OutputLost, record.OutputError = lost, err.Error()
	}
	<-fed
	err := s.record(record)
	s.server.finish(record, err)
	return errors.Join(err, s.proc.release())
}

func (s *supervisor) exitRecord(st status) Exit {
	record := Exit{Nonce: s.spec.Nonce, Signal: st.signal, At: hub.MicrosOf(time.Now())}
	if st.err != nil {
		record.Error = st.err.Error()
		return record
	}
	record.Code = &st.code
	return record
}

// settle takes the output that is left, ends the strays, and says which could
// not be ended.
func (s *supervisor) settle(ctx context.Context) (residual string) {
	if s.keys != nil {
		s.keys.close()
	}
	if err := s.io.hangUp(); err != nil {
		fmt.Fprintln(os.Stderr, "hanging up:", err)
	}
	s.await(drainLimit)
	err := s.ender.rest(ctx, time.Duration(s.spec.StrayGraceMS)*time.Millisecond)
	if err != nil {
		residual = err.Error()
	}
	s.await(closeLimit / 2)
	if err := s.io.close(); err != nil {
		fmt.Fprintln(os.Stderr, "closing the process's files:", err)
	}
	if s.keys != nil {
		s.keys.group.Wait()
	}
	if s.await(closeLimit) {
		if err := s.output.close(); err != nil {
			fmt.Fprintln(os.Stderr, "closing the output:", err)
		}
	}
	return residual
}

// await waits until the output is read to its end, for at most limit.
func (s *supervisor) await(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.copied:
		return true
	case <-timer.C:
		return false
	}
}

func (s *supervisor) copyOutput() {
	defer close(s.copied)
	buffer := make([]byte, outputBuffer)
	for {
		n, err := s.io.out.Read(buffer)
		if s.keys != nil {
			s.keys.answer(s.server.live.scan(buffer[:n]))
		}
		s.output.append(buffer[:n])
		if err != nil {
			return // the end, or closed by settle
		}
	}
}

// feed writes the input. A process that does not read it all is not a failure.
func (s *supervisor) feed(done chan<- struct{}) {
	defer close(done)
	if s.io.in == nil {
		return
	}
	if _, err := s.io.in.Write(s.spec.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "writing the input:", err)
	}
	if err := s.io.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		fmt.Fprintln(os.Stderr, "closing the input:", err)
	}
}

// record makes the exit durable. A full disk may find room again: it is tried
// for a minute, because without the record the exit code is lost.
func (s *supervisor) record(e Exit) error {
	for end := time.Now().Add(recordLimit); ; {
		err := store(s.dir, exitFile, e)
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(recordRetry)
	}
}
