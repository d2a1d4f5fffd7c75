package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// Files of a terminal's directory.
const (
	specFile  = "spec.json"  // written by the hub before the supervisor starts
	claimFile = "claim.json" // who decides whether the process starts; created once
	spawnFile = "spawn.json" // the process has started
	exitFile  = "exit.json"  // the process has ended, or could not be started
	sizeFile  = "size.json"  // the pseudo terminal has another size than in spec.json
	outputDir = "output"
	logFile   = "supervisor.log" // the supervisor's own standard error
)

// launch is spec.json.
type launch struct {
	hub.LaunchSpec
	Nonce    string `json:"nonce"`
	Endpoint string `json:"endpoint"`
	// StrayGraceMS is what strays get between SIGTERM and SIGKILL when the
	// process itself has ended.
	StrayGraceMS int64 `json:"stray_grace_ms"`
}

// claim is claim.json: the supervisor that may start the process, or none
// when the hub gave the launch up.
type claim struct {
	Supervisor *proc.Identity `json:"supervisor"`
	// Cgroup is the folder of the process's own cgroup, where there can be one.
	Cgroup string `json:"cgroup,omitempty"`
}

// spawn is spawn.json.
type spawn struct {
	Incarnation hub.Incarnation `json:"incarnation"`
	Supervisor  proc.Identity   `json:"supervisor"`
}

// Exit is exit.json, the durable record of the end.
type Exit struct {
	Nonce string `json:"nonce"`
	// Code is the exit code, 128 and the number for a signal, nil when the
	// process could not be started.
	Code   *int       `json:"code"`
	Signal string     `json:"signal,omitempty"` // name of the signal that ended it
	At     hub.Micros `json:"at"`
	Error  string     `json:"error,omitempty"` // why it could not be started
	// OutputLost counts bytes that could not be written; OutputError is why.
	OutputLost  int64  `json:"output_lost,omitempty"`
	OutputError string `json:"output_error,omitempty"`
	// Residual says which processes of the tree could not be ended.
	Residual string `json:"residual,omitempty"`
}

// load reads a record into v; found is false when there is none.
func load(dir, name string, v any) (found bool, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return false, fmt.Errorf("reading the record %s: %w", name, err)
	}
	return true, nil
}

// store writes a record durably: when it returns nil, the whole record
// survives a power loss; before that the former one does.
func store(dir, name string, v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		err = replace(filepath.Join(dir, name), raw)
	}
	if err != nil {
		return fmt.Errorf("writing the record %s: %w", name, err)
	}
	return nil
}

func replace(path string, raw []byte) error {
	temp := path + ".tmp"
	if err := writeSynced(temp, raw); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	if err := moveOver(temp, path); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, raw []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// take creates claim.json for c; won is false when somebody else has. It
// decides between processes, not across a power loss, after which no process
// is left to decide about.
func take(dir string, c claim) (won bool, err error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return false, err
	}
	temp, err := os.CreateTemp(dir, claimFile+".*")
	if err != nil {
		return false, fmt.Errorf("claiming the launch: %w", err)
	}
	_, err = temp.Write(raw)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Link(temp.Name(), filepath.Join(dir, claimFile))
	}
	won = err == nil
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err = errors.Join(err, removeIfThere(temp.Name())); err != nil {
		return false, fmt.Errorf("claiming the launch: %w", err)
	}
	return won, nil
}
