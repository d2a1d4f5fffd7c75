package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wavehub/wavehub/internal/safefile"
)

// perAgent begins the keys that limit the workers of one agent.
const perAgent = "limits.per_agent."

// Settable lists what Set takes as a key, for help and messages.
func Settable() []string { return append(slices.Clone(keys), perAgent+"NAME") }

// Set gives the key of the user's file the value and returns the file's path. A
// list is written with commas. The rest of the file stays as it is, comments
// included, but for empty lines. A file that is not valid before or after is *InvalidError, and then
// nothing is written; else the file is replaced whole. A link is followed. A hub
// reads the file when it starts.
func Set(key, value string) (path string, err error) {
	dir, _, err := directories()
	if err != nil {
		return "", err
	}
	path = Config{ConfigDir: dir.Value}.ConfigFile()
	node, err := valueNode(key, value)
	if err != nil {
		return path, err
	}
	old, err := readFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return path, invalidFile(path, err.Error())
	}
	raw, err := edited(old, path, key, node)
	if err != nil {
		return path, err
	}
	return path, replaceFile(path, raw)
}

// valueNode is the value as the key's type is written.
func valueNode(key, value string) (*yaml.Node, error) {
	agent, limited := strings.CutPrefix(key, perAgent)
	switch {
	case key == KeyAdvertise:
		return encoded(split(value)), nil
	case key == KeyAPIRemote:
		b, err := boolean(value)
		return encoded(b), wrong(key, err)
	case key == keyWorkers, limited && validName(agent):
		n, err := integer(value)
		return encoded(n), wrong(key, err)
	case slices.Contains(keys, key):
		return encoded(value), nil
	}
	return nil, &InvalidError{
		Given: true, Hint: "agents are changed in the file itself",
		Message: fmt.Sprintf("%q is not a key that can be set; these are: %s", key, strings.Join(Settable(), ", ")),
	}
}

func wrong(key string, err error) error {
	if err == nil {
		return nil
	}
	return &InvalidError{Given: true, Message: key + ": " + err.Error()}
}

func encoded(v any) *yaml.Node {
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil { // texts, numbers and lists of them always encode
		panic(err)
	}
	return n
}

// edited is the content of the file at path with the key set.
func edited(old []byte, path, key string, value *yaml.Node) ([]byte, error) {
	if _, err := decode(old, path); err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(old, &root); err != nil {
		return nil, invalidFile(path, sayYAML(err))
	}
	if root.Kind == 0 {
		root = yaml.Node{Kind: yaml.DocumentNode, HeadComment: strings.TrimSpace(string(old))} // nothing but comments
	}
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		root.Content = []*yaml.Node{{Kind: yaml.MappingNode}}
	}
	place(root.Content[0], pathOf(key), value)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&root), enc.Close()); err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return out.Bytes(), given(checkContent(out.Bytes(), path))
}

// pathOf is where the key is in the file. The name of an agent may have dots.
func pathOf(key string) []string {
	if agent, ok := strings.CutPrefix(key, perAgent); ok {
		return append(strings.Split(strings.TrimSuffix(perAgent, "."), "."), agent)
	}
	return strings.Split(key, ".")
}

// place puts the value into the mapping, with the comments of the one that was
// there.
func place(mapping *yaml.Node, path []string, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value != path[0] {
			continue
		}
		old := mapping.Content[i+1]
		if len(path) > 1 && old.Kind == yaml.MappingNode {
			place(old, path[1:], value)
			return
		}
		value = within(path[1:], value)
		value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
		mapping.Content[i+1] = value
		return
	}
	mapping.Content = append(mapping.Content, encoded(path[0]), within(path[1:], value))
}

// within is the value inside of new mappings.
func within(path []string, value *yaml.Node) *yaml.Node {
	for _, key := range slices.Backward(path) {
		value = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{encoded(key), value}}
	}
	return value
}

// checkContent validates the content of a file alone: without the environment
// and the flags, which may differ when a hub reads it.
func checkContent(raw []byte, path string) error {
	doc, err := decode(raw, path)
	if err != nil {
		return err
	}
	var c Config
	src := newSources(nil, doc, path, func(string) string { return "" })
	if err := c.fill(src, doc); err != nil {
		return err
	}
	return c.validate(src)
}

// given says that an error is about what Set was given: without it the file was
// read before.
func given(err error) error {
	if e, ok := errors.AsType[*InvalidError](err); ok {
		copied := *e
		copied.Given = true
		return &copied
	}
	return err
}

// replaceFile writes the file, or the one that a link there leads to.
func replaceFile(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return safefile.WriteAtomic(path, raw, mode)
}
