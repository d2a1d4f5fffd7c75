package agent

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// Bounds of what a hook may say.
const (
	MaxEvent  = 1 << 20 // bytes of its JSON
	maxDetail = 2000    // characters of Detail
	maxPath   = 4096    // bytes
)

// sessionGrammar is narrower than any CLI's: an id can be neither an option nor
// a path.
var sessionGrammar = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// Event turns what a CLI said in a hook into wavehub's words. kind is the
// Launcher's Kind and name the hook, as the hook's command has them; raw is the
// JSON. A hook that is not known, or that tells of another thread than the
// worker's, is AgentOther. The class of a failed turn is told; when the
// provider works again only Classify can tell, from Detail and the time.
// Anything malformed is invalid_argument.
func Event(kind, name string, raw []byte) (hub.AgentEvent, error) {
	p, ok := everywhere()[kind]
	if !ok || p.read == nil {
		return hub.AgentEvent{}, hub.Invalid("agent", "%.80q is no agent with hooks", kind)
	}
	if len(raw) > MaxEvent {
		return hub.AgentEvent{}, hub.Invalid("event", "it is larger than %d bytes", MaxEvent)
	}
	e, err := p.read(name, raw)
	if err != nil {
		bad := hub.Invalid("event", "not the JSON of hook %.80q of %s", name, kind)
		bad.Err = err
		return hub.AgentEvent{}, bad
	}
	if e.Kind == "" {
		e.Kind = p.kindOf(name)
	}
	return finish(kind, e)
}

// finish checks and bounds an event.
func finish(kind string, e hub.AgentEvent) (hub.AgentEvent, error) {
	if e.Session != "" && !sessionGrammar.MatchString(e.Session) {
		return hub.AgentEvent{}, hub.Invalid("session_id", "%.80q is no session's id", e.Session)
	}
	if e.Transcript != "" && !isPath(e.Transcript) {
		return hub.AgentEvent{}, hub.Invalid("transcript_path", "%.80q is no absolute, clean path", e.Transcript)
	}
	if e.Kind == hub.AgentTurnFailed && e.Class == "" {
		e.Class, e.ResetAt = Classify(kind, e.Detail, time.Time{})
	}
	e.Detail = safetext.Line(strings.TrimSpace(e.Detail), maxDetail)
	return e, nil
}

func isPath(path string) bool {
	return len(path) <= maxPath && utf8.ValidString(path) && filepath.IsAbs(path) && filepath.Clean(path) == path &&
		strings.IndexFunc(path, unicode.IsControl) < 0
}

// hook is the JSON that codex, Claude Code and gemini-cli hand to a hook.
type hook struct {
	Name       string `json:"hook_event_name"`
	Session    string `json:"session_id"`
	Transcript string `json:"transcript_path"`
	Type       words  `json:"notification_type"`
	Message    words  `json:"message"`
	Tool       words  `json:"tool_name"`
	Error      words  `json:"error"`
	Last       words  `json:"last_assistant_message"`
	Response   words  `json:"prompt_response"`
}

// words is text that is only shown: what is no string is left out.
type words string

// UnmarshalJSON never fails.
func (w *words) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*w = words(s)
	}
	return nil
}

// readHook reads it. A notification is told by its type. The Kind is left open
// where the hook's name says it.
func readHook(name string, raw []byte) (hub.AgentEvent, error) {
	var h hook
	if err := json.Unmarshal(raw, &h); err != nil {
		return hub.AgentEvent{}, err
	}
	if h.Name != "" && h.Name != name {
		return hub.AgentEvent{}, hub.Invalid("hook_event_name", "%.80q instead of %.80q", h.Name, name)
	}
	e := hub.AgentEvent{Session: h.Session, Transcript: h.Transcript, Detail: string(firstOf(h.Message, h.Tool, h.Last, h.Response))}
	switch h.Type {
	case "permission_prompt", "ToolPermission":
		e.Kind = hub.AgentPermission
	case "idle_prompt":
		e.Kind = hub.AgentIdle
	}
	if h.Error != "" {
		e.Detail = strings.TrimSuffix(string(h.Error+": "+h.Last), ": ")
		e.Class = stopFailures[string(h.Error)]
	}
	return e, nil
}

// stopFailures are Claude Code's own words for why a turn failed; those that
// say nothing of the provider are classified by their text.
var stopFailures = map[string]hub.ErrorClass{
	"rate_limit":            "", // also a spent quota: the text tells
	"authentication_failed": hub.ErrorAuthFailed,
	"billing_error":         hub.ErrorQuotaExhausted,
	"server_error":          hub.ErrorTransient,
}

func firstOf(texts ...words) words {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
