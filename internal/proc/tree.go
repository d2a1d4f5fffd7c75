package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// killLimit bounds how long EndTree waits for processes that were killed: the
// kernel may hold one in uninterruptible I/O.
const killLimit = 10 * time.Second

// Tree is a set of processes that is ended as one. The calling process is
// never a member.
type Tree struct {
	Root     Identity // its descendants are members
	WithRoot bool     // and so is Root itself
	// Key and Value mark strays that left the tree: every process whose
	// environment at its start had Key=Value. An empty Key marks none.
	Key, Value string
	// Group is the folder of a cgroup whose processes are members; empty for
	// none.
	Group string
}

// Members returns the live members of the tree, each once. Descendants count
// only while Root is proven live, because its pid names another process after
// that.
func (t Tree) Members() ([]Identity, error) {
	found, err := t.descendants()
	if err != nil {
		return nil, err
	}
	if t.Key != "" {
		strays, err := FindByEnv(t.Key, t.Value)
		if err != nil {
			return nil, err
		}
		found = append(found, strays...)
	}
	grouped, err := groupMembers(t.Group)
	if err != nil {
		return nil, err
	}
	found = append(found, grouped...)
	self := os.Getpid()
	seen := map[int]bool{self: true}
	members := found[:0]
	for _, id := range found {
		if !seen[id.PID] {
			members = append(members, id)
		}
		seen[id.PID] = true
	}
	return members, nil
}

func (t Tree) descendants() ([]Identity, error) {
	table, err := all()
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	err = confirm(t.Root) // after the table: the pid was Root's while it was read
	if errors.Is(err, ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := below(table, t.Root)
	if t.WithRoot {
		found = append([]Identity{t.Root}, found...)
	}
	return found, nil
}

// below walks the table breadth first from root, which it leaves out.
func below(table []process, root Identity) []Identity {
	children := map[int][]process{}
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []Identity
	next := []process{{pid: root.PID, started: root.StartedAt}}
	for seen := map[int]bool{root.PID: true}; len(next) > 0; next = next[1:] {
		for _, c := range children[next[0].pid] {
			if seen[c.pid] || (ppidStale && c.started < next[0].started) {
				continue
			}
			seen[c.pid] = true
			next = append(next, c)
			if !c.ended {
				found = append(found, Identity{PID: c.pid, StartedAt: c.started, BootID: root.BootID})
			}
		}
	}
	return found
}

// EndTree sends SIGTERM to every member, waits for at most grace, then sends
// SIGKILL, looking again for members until none is left. A grace of 0 or less
// kills at once. A nil error is the proof that nothing remained at the end;
// members that could not be ended within ten seconds of the kill are an error.
// When ctx ends, EndTree returns its error and signals nothing more.
func EndTree(ctx context.Context, t Tree, grace time.Duration) error {
	if grace > 0 {
		left, err := t.drive(ctx, syscall.SIGTERM, grace)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && len(left) == 0 {
			return nil
		}
	}
	killGroup(t.Group)
	left, err := t.drive(ctx, syscall.SIGKILL, killLimit)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("ending the tree of process %d: %w", t.Root.PID, err)
	}
	if len(left) > 0 {
		return fmt.Errorf("ending the tree of process %d: %d processes survive the kill", t.Root.PID, len(left))
	}
	return nil
}

// drive signals each member once, newcomers included, until none is left or
// the limit has passed, and returns those left. The error of a signal counts
// only if a member is left.
func (t Tree) drive(ctx context.Context, sig syscall.Signal, limit time.Duration) ([]Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent := map[Identity]bool{}
	var failed error
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		left, err := t.Members()
		if err != nil || len(left) == 0 {
			return nil, err
		}
		for _, id := range left {
			if sent[id] {
				continue
			}
			sent[id] = true
			if err := Signal(id, sig); err != nil && !errors.Is(err, ErrGone) {
				failed = errors.Join(failed, err)
			}
		}
		if awaitGone(ctx, left, pause); ctx.Err() != nil {
			return left, failed
		}
	}
}

// awaitGone returns when every process is gone, after limit, or when ctx ends.
func awaitGone(ctx context.Context, ids []Identity, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for anyLeft(ids) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func anyLeft(ids []Identity) bool {
	for _, id := range ids {
		if Check(id) != hub.Exited {
			return true
		}
	}
	return false
}
