package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/safefile"
	"github.com/wavehub/wavehub/internal/spool"
)

// tokens derives and hashes this hub's credentials; it implements run.Tokens,
// dispatch.Tokens and server.Tokens.
type tokens struct{ key []byte }

func (t tokens) Consumer(run hub.RunID, generation int64) string {
	return keystore.DeriveToken(t.key, "whc_", "consumer", string(run), generation)
}

func (t tokens) Worker(id hub.WorkerID) string {
	return keystore.DeriveToken(t.key, "whw_", "worker", string(id), 1)
}

func (tokens) Sum(token string) string { return keystore.TokenSum(token) }

func (tokens) CheckToken(prefix, s string) bool { return keystore.CheckToken(prefix, s) }

// authority makes capabilities and their files; it implements work.Authority.
type authority struct {
	key         []byte
	root        string // of the terminals' private folders
	url         string
	fingerprint func() string // of the present key
}

func (a authority) Capability(home hub.PeerID, d hub.DispatchID) (token, sum string) {
	token = keystore.DeriveToken(a.key, "whd_", "dispatch", string(home)+"/"+string(d), 1)
	return token, keystore.TokenSum(token)
}

func (a authority) Private(id hub.TerminalID) (string, error) {
	dir := filepath.Join(a.root, string(id))
	return dir, safefile.PrivateDir(dir)
}

// WriteFile replaces the capability file by rename, unless it says the same
// already: a worker that reads it gets the old one or the new one, whole. A hub
// with many workers does this for each before it serves.
func (a authority) WriteFile(at hub.Attachment, token string) (string, error) {
	dir, err := a.Private(at.Terminal)
	if err != nil {
		return "", err
	}
	raw, err := capfile.Encode(capfile.File{
		URL: a.url, Fingerprint: a.fingerprint(), Token: token,
		RunID: string(at.Run), TaskID: string(at.Task), DispatchID: string(at.Dispatch),
		Spool:         spool.Place{Root: a.root, Terminal: at.Terminal, Dispatch: at.Dispatch}.File(),
		MayCoordinate: at.Spec.MayCoordinate, WaveTaskID: at.Spec.Wave.TaskToken(),
	})
	if err != nil {
		return "", fmt.Errorf("encoding the capability file: %w", err)
	}
	path := filepath.Join(dir, config.CapabilityName)
	if was, err := safefile.ReadPrivate(path, capfile.MaxSize); err != nil || !bytes.Equal(was, raw) {
		if err := safefile.WriteAtomic(path, raw, 0o600); err != nil {
			return path, err
		}
	}
	if err := os.Remove(filepath.Join(dir, config.OpenName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return path, fmt.Errorf("taking the mark of an open terminal away: %w", err)
	}
	return path, nil
}

// File is where the terminal's capability file is, or will be.
func (a authority) File(id hub.TerminalID) (string, error) {
	dir, err := a.Private(id)
	return filepath.Join(dir, config.CapabilityName), err
}

// Open marks the terminal as one without a Dispatch. The mark goes when the
// first capability is there, and never comes back.
func (a authority) Open(id hub.TerminalID) (string, error) {
	path, err := a.File(id)
	if err != nil {
		return "", err
	}
	return path, safefile.WriteAtomic(filepath.Join(filepath.Dir(path), config.OpenName), nil, 0o600)
}
