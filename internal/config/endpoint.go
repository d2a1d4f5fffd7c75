package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/safefile"
)

// Endpoint tells local clients where the hub listens and which key it has. The
// hub writes it before it is ready; it stays when the hub stops, so that a port
// chosen for :0 can be taken again.
type Endpoint struct {
	URL         string `json:"url"`
	Fingerprint string `json:"fingerprint"`
	HubID       string `json:"hub_id"`
}

// maxEndpoint bounds the endpoint file, in bytes.
const maxEndpoint = 16 << 10

// EndpointFile is the path of the endpoint file of a data directory.
func EndpointFile(dataDir string) string { return filepath.Join(dataDir, "endpoint") }

// WriteEndpoint replaces the endpoint file (mode 0600); a crash leaves the
// former content or the new one.
func WriteEndpoint(dataDir string, e Endpoint) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding the endpoint: %w", err)
	}
	return safefile.WriteAtomic(EndpointFile(dataDir), append(raw, '\n'), 0o600)
}

// ReadEndpoint returns what the hub of the data directory last wrote. Without
// a file the error is fs.ErrNotExist; a file that others could have written is
// refused with safefile.ErrUnsafe.
func ReadEndpoint(dataDir string) (Endpoint, error) {
	path := EndpointFile(dataDir)
	raw, err := safefile.ReadPrivate(path, maxEndpoint)
	if err != nil {
		return Endpoint{}, fmt.Errorf("reading the hub's address: %w", err)
	}
	var e Endpoint
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return Endpoint{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if e.URL == "" || e.Fingerprint == "" {
		return Endpoint{}, fmt.Errorf("reading %s: url or fingerprint is missing", path)
	}
	return e, nil
}
