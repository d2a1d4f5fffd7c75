package proc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// newGroup makes a cgroup for the test, or says why it is not run.
func newGroup(t *testing.T) string {
	t.Helper()
	dir, err := NewGroup("wavehub-test-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		t.Skipf("this machine gives no cgroup: %v", err)
	}
	t.Cleanup(func() {
		if err := RemoveGroup(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// startIn starts a process in a cgroup.
func startIn(t *testing.T, dir string) Identity {
	t.Helper()
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
	if err := cmd.Start(); err != nil {
		t.Skipf("this machine starts no process in a cgroup: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it was ended by the test
	id, err := Lookup(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A cgroup's processes are members whatever else they are, those of a cgroup
// within it too, and nobody else is.
func TestGroupMembersAreEnded(t *testing.T) {
	dir := newGroup(t)
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	a, b := startIn(t, dir), startIn(t, inner)
	other := startIn(t, newGroup(t))
	tree := Tree{Root: Identity{PID: 1 << 30, BootID: a.BootID}, Group: dir}
	members, err := tree.Members()
	if err != nil || len(members) != 2 || members[0] != a || members[1] != b {
		t.Fatalf("members %v, %v, want %v and %v", members, err, a, b)
	}
	if err := RemoveGroup(dir); err == nil {
		t.Error("a cgroup with processes was removed")
	}
	if err := EndTree(context.Background(), tree, 0); err != nil {
		t.Error(err)
	}
	for _, id := range members {
		if got := Check(id); got != "exited" {
			t.Errorf("process %d is %s", id.PID, got)
		}
	}
	if got := Check(other); got != "live" {
		t.Errorf("a process of another cgroup is %s", got)
	}
}

// A pid of the list that is another process by now is no member.
func TestPidOutsideTheGroupIsNoMember(t *testing.T) {
	dir := newGroup(t)
	if id, err := grouped(strconv.Itoa(os.Getpid()), dir); err != ErrGone {
		t.Errorf("grouped = %v, %v", id, err)
	}
	if _, err := grouped("0", dir); err == nil || unseen(err) {
		t.Errorf("a member that cannot be named: %v", err)
	}
	if members, err := groupMembers(filepath.Join(dir, "gone")); err != nil || len(members) != 0 {
		t.Errorf("a cgroup that is gone: %v, %v", members, err)
	}
}
