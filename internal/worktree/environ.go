package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// passed are the variables of the hub that git may see. HOME only serves
// "~" in a repository's own configuration: user configuration is not read.
var passed = []string{"PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP"}

// fixed keeps git from reading configuration of others, asking, paging,
// editing, fetching and translating its messages.
var fixed = []string{
	"LC_ALL=C",
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_CONFIG_GLOBAL=" + os.DevNull,
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=",
	"GIT_EDITOR=true",
	"GIT_SEQUENCE_EDITOR=true",
	"GIT_PAGER=cat",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_ALLOW_PROTOCOL=none",
	"GIT_COMMITTER_NAME=wavehub",
	"GIT_COMMITTER_EMAIL=wavehub@localhost",
}

// noHooks has git find no hooks.
var noHooks = setting{"core.hooksPath", os.DevNull}

// harmless overrides whatever a repository configures; as settings of the
// command they win over every file.
var harmless = []setting{
	{"core.fsmonitor", "false"},
	{"core.untrackedCache", "false"},
	{"core.longpaths", "true"},
	{"core.filesRefLockTimeout", "2000"},
	{"core.packedRefsTimeout", "5000"},
	{"core.askPass", ""},
	{"credential.helper", ""},
	{"submodule.recurse", "false"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"advice.detachedHead", "false"},
}

func (c call) environment() []string {
	env := append(append(inherited(), fixed...), c.env...)
	settings := append(append([]setting{}, harmless...), c.config...)
	if !c.hooks {
		settings = append(settings, noHooks)
	}
	if c.dir != "" {
		settings = append(settings, setting{"safe.directory", filepath.ToSlash(c.dir)})
	}
	env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)))
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.value))
	}
	return env
}

func inherited() []string {
	var env []string
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, strings.ToUpper(name)+"="+value)
		}
	}
	return env
}
