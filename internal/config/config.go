package config

import (
	"path/filepath"
	"time"
)

// Config is everything that is configured about one hub.
type Config struct {
	Name      string   // how the hub calls itself to peers; default: the host's name
	Listen    string   // host:port; port 0 takes a free one, which is remembered
	Advertise []string // addresses (host:port) that peers are told to use
	APIRemote bool     // serve the operator API to hosts other than loopback
	ConfigDir string   // absolute
	DataDir   string   // absolute
	Agents    map[string]AgentDefinition
	Limits    Limits
	LogLevel  string // debug, info, warn, error
	// VerifyTimeout bounds a verification whose Task does not.
	VerifyTimeout time.Duration
	// WaveLivenessSecs is that of waves whose policy does not say it, 0 never.
	WaveLivenessSecs int

	origins []Origin
}

// AgentDefinition is a launcher that the user defines or changes. Empty fields
// leave the choice to the built-in launcher of that name or of Like, or to the
// defaults. Package agent says what can be combined.
type AgentDefinition struct {
	Like       string               // the built-in launcher to begin from
	Command    []string             // argv; the first is a program, never a shell line
	Mode       string               // the default mode: tui, headless
	Modes      map[string]AgentMode // by mode
	Deliver    string               // argv, stdin, file, paste: for a launcher of one mode
	Completion string               // report, result, exit
	Env        map[string]string    // added to the worker's environment
	Grace      time.Duration        // between the polite and the forced end; 0: default
	Version    []string             // argv that prints the version
	Bare       *bool                // hand over the Task's text alone
}

// AgentMode is how a launcher runs in one mode. Args nil leaves the built-in's.
type AgentMode struct {
	Args    []string
	Deliver string // argv, stdin, file, paste
	Ready   string // launch, hook, title, quiescence
	Result  string // kind of the output stream, none for none
}

// Limits bound how many workers run at once; 0 means no limit.
type Limits struct {
	Workers  int
	PerAgent map[string]int
}

// Origin says where one effective value came from: "flag --listen",
// "environment WAVEHUB_LISTEN", "file /…/config.yaml" or "default".
type Origin struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"origin"`
}

// Origins lists the effective values in the order of the documentation.
func (c Config) Origins() []Origin { return append([]Origin(nil), c.origins...) }

// ConfigFile is the path of the user's file; it need not exist.
func (c Config) ConfigFile() string { return filepath.Join(c.ConfigDir, "config.yaml") }

// TokenFile is the path of the operator's token.
func (c Config) TokenFile() string { return filepath.Join(c.DataDir, "token") }

// ReaderTokenFile is the path of the token that may only read.
func (c Config) ReaderTokenFile() string { return filepath.Join(c.DataDir, "reader-token") }

// TerminalDir is the folder of the hub's terminals.
func (c Config) TerminalDir() string { return filepath.Join(c.DataDir, "terminals") }

// PrivateDir has a folder for each terminal that only the hub and its worker use.
func (c Config) PrivateDir() string { return filepath.Join(c.DataDir, "dispatches") }

// CapabilityName is the name of the capability file in a terminal's private
// folder.
const CapabilityName = "dispatch.json"

// OpenName is the mark, in a terminal's private folder, that the terminal has
// never had a Dispatch: its user's programs in it are his own.
const OpenName = "open"

// OpenFile is the path of that mark.
func (c Config) OpenFile(terminal string) string {
	return filepath.Join(c.PrivateDir(), terminal, OpenName)
}

// CapabilityFile is the path of a terminal's capability.
func (c Config) CapabilityFile(terminal string) string {
	return filepath.Join(c.PrivateDir(), terminal, CapabilityName)
}

// AttachDir has a folder for each attached worker whose loop runs on this host.
func (c Config) AttachDir() string { return filepath.Join(c.DataDir, "attached") }

// CertFile is the path of the hub's self-signed certificate, which is also the
// authority that other HTTPS clients are given.
func (c Config) CertFile() string { return filepath.Join(c.DataDir, "cert.pem") }
