package spool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/safefile"
)

// MaxRejected is how many refused lines of one Dispatch are kept.
const MaxRejected = 64

// Rejected is a refused line: Notice is the id of the one notice about it, File
// the name of what is kept of it, "" for nothing.
type Rejected struct {
	Notice hub.MessageID
	File   string
}

// Reject keeps a line that was refused beside the spool, under a name that is
// made of it: rejecting it again changes nothing. Lines over MaxRejected are not
// kept and share one notice.
func Reject(p Place, e Entry) (Rejected, error) {
	if len(e.Raw) == 0 && e.Err != nil {
		return Rejected{p.notice("whole"), string(p.Dispatch) + "-whole"}, nil
	}
	sum := sha256.Sum256(e.Raw)
	text := hex.EncodeToString(sum[:])
	name := string(p.Dispatch) + "-" + text[:16] + ".json"
	folder := filepath.Join(p.folder(), rejectedFolder)
	if err := safefile.PrivateDir(folder); err != nil {
		return Rejected{}, err
	}
	others, err := p.others(folder, name)
	if err != nil {
		return Rejected{}, err
	}
	if others >= MaxRejected {
		return Rejected{Notice: p.notice("more")}, nil
	}
	return Rejected{p.notice(text), name}, keepLine(filepath.Join(folder, name), e.Raw)
}

func keepLine(path string, line []byte) error {
	data := append(bytes.Clone(line), '\n')
	was, err := safefile.ReadPrivate(path, MaxBytes+MaxLine)
	if err == nil && bytes.Equal(was, data) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, safefile.ErrTooLarge) {
		return err
	}
	return safefile.WriteAtomic(path, data, 0o600)
}

// others counts the refused lines of the Dispatch that are kept beside name.
func (p Place) others(folder, name string) (int, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, fmt.Errorf("reading what was refused before: %w", err)
	}
	n := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), string(p.Dispatch)+"-") && e.Name() != name {
			n++
		}
	}
	return n, nil
}

// notice derives the id of a notice from what it is about.
func (p Place) notice(about string) hub.MessageID {
	sum := sha256.Sum256([]byte("wavehub-spool-rejected/1 " + string(p.Dispatch) + " " + about))
	return hub.MessageID(hub.PrefixMessage + id.Encode([16]byte(sum[:16])))
}
