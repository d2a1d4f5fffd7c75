package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/agent"
	"github.com/wavehub/wavehub/internal/safetext"
)

// maxAbove bounds the search for a repository's root.
const maxAbove = 64

// carried warns of configuration that the agent may take from the repository that
// it works in. Whether it is trusted is between the agent and its user: the hub
// trusts nothing on the user's behalf.
func carried(l agent.Launcher, dir string) []string {
	var found []string
	for range maxAbove {
		for _, path := range l.Carried() {
			at := filepath.Join(dir, filepath.FromSlash(path))
			if _, err := os.Lstat(at); err == nil {
				found = append(found, at)
			}
		}
		_, err := os.Lstat(filepath.Join(dir, ".git"))
		if above := filepath.Dir(dir); err != nil && above != dir {
			dir = above
			continue
		}
		break
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return []string{"agent_config: the repository carries configuration of " + l.Kind + ": " + safetext.Line(strings.Join(found, ", "), 2000)}
}
