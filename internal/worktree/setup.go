package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wavehub/wavehub/internal/hub"
)

// SetupFile is where a repository configures its setup:
//
//	setup:
//	  run: make deps                  # text for the platform's shell
//	  policy: start-immediately       # or wait-for-setup
//
// Other entries at its top are left to others.
const SetupFile = "wavehub.yaml"

const (
	setupFileCap = 256 << 10
	setupRunCap  = 64 << 10
)

// SetupHook reads the SetupFile of a commit. commit is a full object id. Only a
// regular file at the top counts. A file that is not YAML, is larger than 256
// KiB, or whose setup is anything but the two entries as plain text, is
// invalid_argument; the hook then is Found all the same.
func (g *Git) SetupHook(ctx context.Context, repo Facts, commit string) (hub.SetupHook, error) {
	if !oidGrammar.MatchString(commit) {
		return hub.SetupHook{}, hub.Invalid("commit", "%q is not a full object id", commit)
	}
	if repo.Kind != KindGit {
		return hub.SetupHook{}, nil
	}
	at := record{gitDir: repo.GitDir, workTree: repo.Path}
	oid, err := g.blob(ctx, at, commit, SetupFile)
	if err != nil || oid == "" {
		return hub.SetupHook{}, err
	}
	size, err := g.run(ctx, call{at: at, args: []string{"cat-file", "-s", oid}})
	if err != nil {
		return hub.SetupHook{}, err
	}
	if n, err := strconv.Atoi(strings.TrimSpace(size)); err != nil || n > setupFileCap {
		return hub.SetupHook{Found: true}, badSetup(commit, "has %s bytes, more than %d", strings.TrimSpace(size), setupFileCap)
	}
	text, err := g.run(ctx, call{at: at, args: []string{"cat-file", "blob", oid}})
	if err != nil {
		return hub.SetupHook{}, err
	}
	return parseSetup(text, commit)
}

func badSetup(commit, format string, args ...any) error {
	e := hub.Invalid(SetupFile, "at %s: "+format, append([]any{commit}, args...)...)
	e.Hint = "correct it and commit that, or use --setup skip"
	return e
}

func parseSetup(text, commit string) (hub.SetupHook, error) {
	hook := hub.SetupHook{Found: true, Policy: hub.PolicyImmediate}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return hook, badSetup(commit, "it cannot be read: %v", err)
	}
	setup, err := entryOf(doc, "setup")
	if err != nil {
		return hook, badSetup(commit, "%v", err)
	}
	if setup == nil || setup.Kind == yaml.ScalarNode && setup.Tag == "!!null" {
		return hub.SetupHook{}, nil
	}
	if err := readSetup(*setup, &hook); err != nil {
		return hook, badSetup(commit, "line %d: %v", setup.Line, err)
	}
	sum := sha256.Sum256([]byte(text))
	hook.Hash = hex.EncodeToString(sum[:])
	return hook, nil
}

// entryOf is the value of a key at the top of a document, nil for none. Nodes
// are looked at as they were written: nothing is expanded.
func entryOf(doc yaml.Node, key string) (*yaml.Node, error) {
	if len(doc.Content) == 0 {
		return nil, nil
	}
	top := doc.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("its top is not a mapping")
	}
	var found *yaml.Node
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != key {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s is there twice", key)
		}
		found = top.Content[i+1]
	}
	return found, nil
}

// readSetup takes run and policy, each once and as plain text.
func readSetup(setup yaml.Node, hook *hub.SetupHook) error {
	if setup.Kind != yaml.MappingNode {
		return fmt.Errorf("setup is not a mapping with run and policy")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(setup.Content); i += 2 {
		key, value := setup.Content[i].Value, setup.Content[i+1]
		switch {
		case key != "run" && key != "policy":
			return fmt.Errorf("setup has run and policy, and no %q", key)
		case seen[key]:
			return fmt.Errorf("setup.%s is there twice", key)
		case value.Kind != yaml.ScalarNode || value.Tag != "!!str":
			return fmt.Errorf("setup.%s is not text", key)
		case key == "run":
			hook.Run = value.Value
		default:
			hook.Policy = value.Value
		}
		seen[key] = true
	}
	return checkSetup(*hook)
}

func checkSetup(h hub.SetupHook) error {
	switch {
	case strings.TrimSpace(h.Run) == "":
		return fmt.Errorf("setup.run is missing or empty")
	case len(h.Run) > setupRunCap:
		return fmt.Errorf("setup.run has %d bytes, more than %d", len(h.Run), setupRunCap)
	case strings.Contains(h.Run, "\x00"):
		return fmt.Errorf("setup.run holds a NUL byte")
	case h.Policy != hub.PolicyImmediate && h.Policy != hub.PolicyWait:
		return fmt.Errorf("setup.policy is %q, not %s or %s", h.Policy, hub.PolicyImmediate, hub.PolicyWait)
	}
	return nil
}

// blob returns the object id of a regular file at the top of the commit, empty
// when there is none.
func (g *Git) blob(ctx context.Context, at record, commit, name string) (string, error) {
	out, err := g.run(ctx, call{at: at, args: []string{"ls-tree", "-z", "--full-tree", commit, "--", name}})
	if err != nil || out == "" {
		return "", err
	}
	fields := strings.Fields(strings.TrimSuffix(out, "\x00"))
	if len(fields) < 4 {
		return "", fmt.Errorf("git ls-tree answered %q", out)
	}
	if fields[1] != "blob" || !strings.HasPrefix(fields[0], "100") {
		return "", nil
	}
	return fields[2], nil
}
