package hub

import "encoding/json"

// TranscriptMessage is one entry of an agent's own record of its session. One
// with the ID of an earlier one replaces it. All of it is worker text.
type TranscriptMessage struct {
	ID     string            `json:"id"`
	Role   string            `json:"role"` // user, assistant, system, tool, other
	At     Micros            `json:"at"`   // 0: the record has no time
	Blocks []TranscriptBlock `json:"blocks"`
	Usage  *Usage            `json:"usage,omitempty"`
}

// BlockKind is what a block of a message is.
type BlockKind string

// The kinds of blocks. A record of an unknown kind is kept as other.
const (
	BlockText       BlockKind = "text"
	BlockThinking   BlockKind = "thinking"
	BlockToolCall   BlockKind = "tool_call"
	BlockToolResult BlockKind = "tool_result"
	BlockImageRef   BlockKind = "image_ref"
	BlockOther      BlockKind = "other"
)

// TranscriptBlock is one part of a message. Tool calls have Name, Call and
// Input, which is a JSON string if it was cut or was no JSON; tool results Call,
// Text and Error; an image has only its kind and the media type as Name, never a
// local path; what is of kind other has its type as Name and an excerpt as Text.
type TranscriptBlock struct {
	Kind  BlockKind       `json:"kind"`
	Text  string          `json:"text,omitempty"`
	Name  string          `json:"name,omitempty"`
	Call  string          `json:"call_id,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Error bool            `json:"is_error,omitempty"`
}
