// Package capfile is the format of the file that gives a worker its
// capability, or, of one turn of an attached worker, that worker's token. Who writes and reads the file sees to its privacy; this package
// only encodes and decodes, strictly: a file that is not wholly understood is
// refused.
package capfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Version is the format that this package writes and the only one it reads.
const Version = 1

// MaxSize bounds an encoded file, in bytes.
const MaxSize = 16 << 10

// File is the content: one Dispatch's credential and where to use it. Token is
// a secret: never print or log a File.
type File struct {
	Version     int    `json:"version"`
	URL         string `json:"url"`         // of the hub that owns the worker
	Fingerprint string `json:"fingerprint"` // that hub's key
	Token       string `json:"token"`       // whd_…, or whw_… of an attached worker
	RunID       string `json:"run_id"`
	TaskID      string `json:"task_id"`
	DispatchID  string `json:"dispatch_id"`
	Spool       string `json:"spool"` // absolute path; empty for none
	// MayCoordinate says that the worker may create and coordinate a child Run.
	MayCoordinate bool `json:"may_coordinate,omitempty"`
	// WaveTaskID is the token of a wave's task, which stands for TaskID in a report.
	WaveTaskID string `json:"wave_task_id,omitempty"`
}

// Encode returns the JSON text of f with the current Version, whatever
// f.Version says, and refuses what Decode would refuse.
func Encode(f File) ([]byte, error) {
	f.Version = Version
	if err := f.check(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encoding the dispatch file: %w", err)
	}
	if len(raw) >= MaxSize {
		return nil, fmt.Errorf("the dispatch file would have more than %d bytes", MaxSize)
	}
	return append(raw, '\n'), nil
}

// Decode reads one file: exactly one JSON object, no unknown and no missing
// field, the current Version. Errors do not quote the content.
func Decode(raw []byte) (File, error) {
	if len(raw) > MaxSize {
		return File{}, fmt.Errorf("the dispatch file has more than %d bytes", MaxSize)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var f File
	if err := dec.Decode(&f); err != nil {
		return File{}, errors.New("the dispatch file is not the expected JSON object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return File{}, errors.New("the dispatch file holds more than one document")
	}
	return f, f.check()
}

// Attached reports whether the file is of an attached worker's turn: its token is
// good for all that worker's Dispatches.
func (f File) Attached() bool { return strings.HasPrefix(f.Token, "whw_") }

func (f File) check() error {
	if f.Version != Version {
		return fmt.Errorf("the dispatch file has version %d, this program knows %d", f.Version, Version)
	}
	if !strings.HasPrefix(f.Token, "whd_") && !f.Attached() {
		return errors.New("the dispatch file has no token")
	}
	for _, field := range []struct{ name, value string }{
		{"url", f.URL}, {"fingerprint", f.Fingerprint},
		{"run_id", f.RunID}, {"task_id", f.TaskID}, {"dispatch_id", f.DispatchID},
	} {
		if field.value == "" {
			return fmt.Errorf("the dispatch file has no %s", field.name)
		}
	}
	return nil
}
