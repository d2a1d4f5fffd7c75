package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds the user's file, in bytes.
const maxFile = 1 << 20

// document is the schema of config.yaml. Pointers tell absent from zero.
type document struct {
	Name         *string                  `yaml:"name"`
	Listen       *string                  `yaml:"listen"`
	Advertise    []string                 `yaml:"advertise"`
	APIRemote    *bool                    `yaml:"api_remote"`
	LogLevel     *string                  `yaml:"log_level"`
	Verify       *int                     `yaml:"verify_timeout_secs"`
	WaveLiveness *int                     `yaml:"wave_liveness_secs"`
	Agents       map[string]documentAgent `yaml:"agents"`
	Limits       documentLimits           `yaml:"limits"`
}

type documentAgent struct {
	Like    string   `yaml:"like"`
	Command []string `yaml:"command"`
	Mode    string   `yaml:"mode"`
	Modes   struct {
		TUI      *documentMode `yaml:"tui"`
		Headless *documentMode `yaml:"headless"`
	} `yaml:"modes"`
	Deliver    string            `yaml:"deliver"`
	Completion string            `yaml:"completion"`
	Env        map[string]string `yaml:"env"`
	Grace      string            `yaml:"grace"`
	Version    []string          `yaml:"version"`
	Bare       *bool             `yaml:"bare"`
}

type documentMode struct {
	Args    []string `yaml:"args"`
	Deliver string   `yaml:"deliver"`
	Ready   string   `yaml:"ready"`
	Result  string   `yaml:"result"`
}

type documentLimits struct {
	Workers  *int           `yaml:"workers"`
	PerAgent map[string]int `yaml:"per_agent"`
}

// readDocument decodes the file strictly; a missing file is an empty document.
func readDocument(path string) (document, error) {
	raw, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return document{}, nil
	}
	if err != nil {
		return document{}, invalidFile(path, err.Error())
	}
	return decode(raw, path)
}

// decode decodes the content of the file at path, strictly.
func decode(raw []byte, path string) (document, error) {
	var doc document
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return document{}, invalidFile(path, sayYAML(err))
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return document{}, invalidFile(path, "it holds more than one document")
	}
	return doc, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return raw, errors.Join(err, f.Close())
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// sayYAML words the decoder's complaint for people who do not know our types.
func sayYAML(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	text = unknownField.ReplaceAllString(text, `unknown key "$1"`)
	return strings.Join(strings.Fields(text), " ")
}

func invalidFile(path, problem string) error {
	return invalid("mend or remove that line", nil, "%s: %s", path, problem)
}

func (d document) agents(path string) (map[string]AgentDefinition, error) {
	out := make(map[string]AgentDefinition, len(d.Agents))
	for name, a := range d.Agents {
		def := AgentDefinition{
			Like: a.Like, Command: a.Command, Mode: a.Mode, Modes: a.modes(), Deliver: a.Deliver, Completion: a.Completion,
			Env: a.Env, Version: a.Version, Bare: a.Bare,
		}
		if a.Grace != "" {
			grace, err := time.ParseDuration(a.Grace)
			if err != nil || grace < 0 {
				return nil, invalidFile(path, fmt.Sprintf("agents.%s.grace: %q is not a duration such as 5s", name, a.Grace))
			}
			def.Grace = grace
		}
		out[name] = def
	}
	return out, nil
}

func (a documentAgent) modes() map[string]AgentMode {
	out := map[string]AgentMode{}
	for name, m := range map[string]*documentMode{"tui": a.Modes.TUI, "headless": a.Modes.Headless} {
		if m != nil {
			out[name] = AgentMode(*m)
		}
	}
	return out
}
