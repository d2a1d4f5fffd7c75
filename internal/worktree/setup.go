package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wavehub/wavehub/internal/hub"
)

// SetupFile is where a repository configures its setup.
const SetupFile = "wavehub.yaml"

const setupFileCap = 256 << 10

// SetupHook reports whether the commit has a SetupFile with a setup entry, and
// the SHA-256 of that file in hexadecimal. commit is a full object id. Only a
// regular file at the top counts. A file that is not YAML or is larger than
// 256 KiB is invalid_argument.
func (g *Git) SetupHook(ctx context.Context, repo Facts, commit string) (found bool, sum string, err error) {
	if !oidGrammar.MatchString(commit) {
		return false, "", hub.Invalid("commit", "%q is not a full object id", commit)
	}
	if repo.Kind != KindGit {
		return false, "", nil
	}
	at := record{gitDir: repo.GitDir, workTree: repo.Path}
	oid, err := g.blob(ctx, at, commit, SetupFile)
	if err != nil || oid == "" {
		return false, "", err
	}
	text, err := g.run(ctx, call{at: at, args: []string{"cat-file", "blob", oid}})
	if err != nil {
		return false, "", err
	}
	return parseSetup(text, commit)
}

func parseSetup(text, commit string) (bool, string, error) {
	if len(text) > setupFileCap {
		return false, "", hub.Invalid(SetupFile, "has %d bytes at %s, more than %d", len(text), commit, setupFileCap)
	}
	var file struct {
		Setup yaml.Node `yaml:"setup"`
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return false, "", hub.Invalid(SetupFile, "cannot be read at %s: %v", commit, err)
	}
	if file.Setup.IsZero() || file.Setup.Tag == "!!null" {
		return false, "", nil
	}
	sum := sha256.Sum256([]byte(text))
	return true, hex.EncodeToString(sum[:]), nil
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
