//go:build unix

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func createNew(path string, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, mode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil { // the umask may have taken bits away
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, nil
}

func replace(from, to string) error { return os.Rename(from, to) }

// SyncDir puts the names in the folder on the disk.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the folder to sync it: %w", err)
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) { // the filesystem has no such operation
		err = nil
	}
	return errors.Join(err, d.Close())
}

func mkdirPrivate(path string) error { return os.Mkdir(path, 0o700) }

func openNoFollow(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &UnsafeError{path, "is a symbolic link", "replace it by a regular file"}
	}
	return f, err
}

func checkFile(_ *os.File, info fs.FileInfo, path string) error {
	if err := checkOwner(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return &UnsafeError{path, fmt.Sprintf("is open to other users (mode %04o)", info.Mode().Perm()), "chmod 600 " + path}
	}
	return nil
}

func checkDirOwner(path string, info fs.FileInfo) error {
	if err := checkOwner(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return &UnsafeError{path, fmt.Sprintf("can be written by other users (mode %04o)", info.Mode().Perm()), "chmod 700 " + path}
	}
	return nil
}

func checkOwner(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: the owner cannot be read", path)
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return &UnsafeError{path, fmt.Sprintf("belongs to user %d, not to %d", st.Uid, uid), fmt.Sprintf("chown %d %s, or run as its owner", uid, path)}
	}
	return nil
}
