package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxGroups bounds the groups that members of a group made below it.
const maxGroups = 10_000

// NewGroup makes a cgroup below that of this process and returns its folder. The
// name is used once on the machine. It fails where cgroups of version 2 are not mounted, or not this
// user's to divide.
func NewGroup(name string) (string, error) {
	mount, err := groupMount()
	if err != nil {
		return "", err
	}
	own, err := groupOf("self")
	if err != nil {
		return "", err
	}
	// Who moves processes needs to write where they are moved within.
	if err := unix.Access(filepath.Join(mount, own, "cgroup.procs"), unix.W_OK); err != nil {
		return "", fmt.Errorf("the cgroup %s is not ours to divide: %w", own, err)
	}
	dir := filepath.Join(mount, own, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a cgroup: %w", err)
	}
	return dir, nil
}

// RemoveGroup removes a cgroup that has no processes, and those below it; none
// is no error.
func RemoveGroup(dir string) error {
	groups, err := groupsIn(dir)
	if err != nil {
		return err
	}
	slices.Reverse(groups) // what is below comes first
	for _, g := range groups {
		if err := unix.Rmdir(g); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("removing the cgroup %s: %w", g, err)
		}
	}
	return nil
}

// groupMount returns where cgroups of version 2 are mounted.
func groupMount() (string, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(raw)) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if ok && strings.HasPrefix(after, "cgroup2 ") && len(f) > 4 && f[3] == "/" {
			return f[4], nil
		}
	}
	return "", errors.New("cgroups of version 2 are not mounted")
}

// groupOf returns the cgroup of a process, from the root of the mount.
func groupOf(pid string) (string, error) {
	raw, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(raw) {
		if own, ok := bytes.CutPrefix(line, []byte("0::/")); ok {
			return "/" + strings.TrimSuffix(string(own), "\n"), nil
		}
	}
	return "", fmt.Errorf("process %s is in no cgroup of version 2", pid)
}

// groupsIn returns a cgroup and all below it, each before what is below.
func groupsIn(dir string) ([]string, error) {
	var groups []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil || !e.IsDir():
			return err
		case len(groups) == maxGroups:
			return fmt.Errorf("the cgroup %s has too many below it", dir)
		}
		groups = append(groups, path)
		return nil
	})
	return groups, err
}

// groupMembers returns the live processes of a cgroup and of those below it.
func groupMembers(dir string) ([]Identity, error) {
	if dir == "" {
		return nil, nil
	}
	groups, err := groupsIn(dir)
	if err != nil {
		return nil, err
	}
	var found []Identity
	for _, g := range groups {
		raw, err := os.ReadFile(filepath.Join(g, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("reading a cgroup: %w", err)
		}
		for _, pid := range strings.Fields(string(raw)) {
			id, err := grouped(pid, dir)
			if err == nil {
				found = append(found, id)
			} else if !unseen(err) {
				return nil, err
			}
		}
	}
	return found, nil
}

// grouped returns the live process that has the pid and is within the cgroup,
// ErrGone when there is none.
func grouped(pid, dir string) (Identity, error) {
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 0 {
		return Identity{}, fmt.Errorf("a member of the cgroup %s cannot be named from here: %q", dir, pid)
	}
	id, err := Lookup(n)
	if err != nil {
		return Identity{}, err
	}
	// After the look-up: the pid may have changed hands before it.
	group, err := groupOf(pid)
	if err != nil {
		return Identity{}, err
	}
	// The group's name is of one terminal, wherever the mount begins.
	if !strings.Contains(group+"/", "/"+filepath.Base(dir)+"/") {
		return Identity{}, ErrGone
	}
	return id, confirm(id)
}

// killGroup kills all processes of a cgroup at once, also those that are just
// being made. It is only a help: who is left is looked at after it.
func killGroup(dir string) {
	if dir != "" {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // not before Linux 5.14
	}
}
