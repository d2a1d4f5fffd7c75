package worktree

import (
	"context"
	"fmt"
	"os"
)

// acquire opens the file. There is nothing to wait for: the git processes of a
// hub end with it, by the Job object that they are in, and one hub at a time has
// the folder.
func acquire(_ context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of worktrees: %w", err)
	}
	return f, nil
}

// keeps is nothing: processes cannot be given files here.
func keeps(*os.File) []*os.File { return nil }
