package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
)

// Bounds of what is read to tell whether a file was changed. Beyond them its
// size and its time decide.
const (
	printFileBytes = 16 << 20
	printAllBytes  = 256 << 20
)

// printAll looks at each path of a working tree.
func printAll(ctx context.Context, root string, paths []string) ([]hub.DirtyPath, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	tree, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	out, room := make([]hub.DirtyPath, len(paths)), int64(printAllBytes)
	for i, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = printOf(tree, path, &room)
	}
	return out, nil
}

// printOf is what lies at the path. What cannot be looked at, for it is gone or
// behind a link that leads out, is gone.
func printOf(tree *os.Root, path string, room *int64) hub.DirtyPath {
	p := hub.DirtyPath{Path: path, Kind: hub.PathGone}
	name := filepath.FromSlash(path)
	info, err := tree.Lstat(name)
	if err != nil {
		return p
	}
	p.Size, p.At = info.Size(), info.ModTime().UnixNano()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		p.Kind = hub.PathLink
		if to, err := tree.Readlink(name); err == nil {
			p.Sum = sumOf([]byte(to))
		}
	case info.IsDir():
		p.Kind, p.Size = hub.PathFolder, 0
	case info.Mode().IsRegular() && p.Size <= printFileBytes && p.Size <= *room:
		p.Kind = hub.PathFile
		*room -= p.Size
		if sum, n, err := hashFile(tree, name, p.Size); err == nil && n == p.Size {
			p.Sum = sum
		}
	default:
		p.Kind = hub.PathFile
	}
	return p
}

func sumOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// hashFile hashes at most limit bytes of a regular file.
func hashFile(tree *os.Root, name string, limit int64) (sum string, n int64, err error) {
	f, err := tree.OpenFile(name, openFlags, 0)
	if err != nil {
		return "", 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() { // it was replaced meanwhile
		err = fs.ErrInvalid
	}
	h := sha256.New()
	if err == nil {
		n, err = io.Copy(h, io.LimitReader(f, limit))
	}
	return hex.EncodeToString(h.Sum(nil)), n, errors.Join(err, f.Close())
}

// maxHandoff bounds the notes whose hash is taken.
const maxHandoff = 64 << 20

// Handoff is what lies at the path within dir. A link that leads out of dir is
// not followed, and only a regular file is present.
func Handoff(dir, path string) (hub.Handoff, error) {
	tree, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return hub.Handoff{}, nil
	}
	if err != nil {
		return hub.Handoff{}, err
	}
	defer tree.Close()
	name := filepath.FromSlash(path)
	info, err := tree.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return hub.Handoff{}, nil // missing, a folder, or outside
	}
	out := hub.Handoff{Present: true, Bytes: info.Size()}
	if out.Bytes > maxHandoff {
		return out, nil
	}
	sum, n, err := hashFile(tree, name, maxHandoff)
	if err != nil {
		return hub.Handoff{}, err
	}
	out.Bytes, out.SHA256 = n, sum
	return out, nil
}
