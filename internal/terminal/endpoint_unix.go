//go:build unix

package terminal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxEndpoint is what every system takes as a socket's path, in bytes.
const maxEndpoint = 100

// endpointFor returns a socket path for the terminal, in a folder that only
// this user can enter. Terminal ids are unique, so is the path.
func endpointFor(id hub.TerminalID) (string, error) {
	mine := "wavehub-" + strconv.Itoa(os.Geteuid())
	folders := []string{filepath.Join(os.TempDir(), mine), filepath.Join("/tmp", mine)}
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		folders = append([]string{filepath.Join(run, "wavehub")}, folders...)
	}
	var failed error
	for _, dir := range folders {
		path := filepath.Join(dir, string(id)+".sock")
		if len(path) > maxEndpoint {
			failed = errors.Join(failed, fmt.Errorf("%s: the path is too long for a socket", path))
			continue
		}
		err := ownFolder(dir)
		if err == nil {
			return path, nil
		}
		failed = errors.Join(failed, err)
	}
	return "", fmt.Errorf("finding a folder for sockets: %w", failed)
}

// ownFolder makes dir, or checks that it is this user's alone.
func ownFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a folder that only this user can enter", dir)
	}
	return nil
}

// listen opens the endpoint; closing the listener removes it.
func listen(endpoint string) (net.Listener, error) {
	if err := removeIfThere(endpoint); err != nil {
		return nil, err
	}
	return net.Listen("unix", endpoint)
}

func dial(ctx context.Context, endpoint string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", endpoint)
}

// removeEndpoint removes what a killed supervisor left.
func removeEndpoint(endpoint string) error { return removeIfThere(endpoint) }
