package agent

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// ownPrefix begins the variables of wavehub itself, which a worker gets only
// from what the hub prepared for it.
const ownPrefix = "WAVEHUB_"

var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TMPDIR", "TZ",
	"SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"GOPATH", "GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE",
	"GOINSECURE", "GOVCS", "GOROOT", "GOTOOLCHAIN", "GOENV", "GOBIN", "GOTMPDIR", "GOMAXPROCS", "GOEXPERIMENT",
	"CGO_ENABLED",
}

var allowedPrefixes = []string{"LC_", "XDG_"}

var allowedOnWindows = []string{
	"PATH", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERNAME", "USERDOMAIN", "USERPROFILE",
	"HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "ALLUSERSPROFILE", "PUBLIC", "TEMP", "TMP",
	"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)",
	"COMMONPROGRAMW6432", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS", "COMPUTERNAME", "PSMODULEPATH",
}

// Environment returns a worker's whole environment, sorted: of base (the hub's
// own, as os.Environ gives it) only what is on a fixed list, never a variable
// of wavehub, and then extra, which wins.
func Environment(base []string, extra map[string]string) []string {
	return environment(base, extra, runtime.GOOS == "windows")
}

func environment(base []string, extra map[string]string, windows bool) []string {
	vars := map[string]string{} // by folded key: the whole entry
	for _, entry := range base {
		if key, _, ok := strings.Cut(entry, "="); ok && inherits(key, windows) {
			vars[fold(key, windows)] = entry
		}
	}
	for key, value := range extra {
		vars[fold(key, windows)] = key + "=" + value
	}
	return slices.Sorted(maps.Values(vars))
}

func fold(key string, windows bool) string {
	if windows {
		return strings.ToUpper(key)
	}
	return key
}

func inherits(key string, windows bool) bool {
	key = fold(key, windows)
	if strings.HasPrefix(key, ownPrefix) {
		return false
	}
	for _, prefix := range allowedPrefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.Contains(allowed, key) || windows && slices.Contains(allowedOnWindows, key)
}
