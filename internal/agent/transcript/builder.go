package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// The roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
	roleTool      = "tool"
	roleOther     = "other"
)

// Bounds of one message, whatever page it is on. They are below those of a
// page, so that every message fits on one.
const (
	maxBlock    = 64 << 10  // text or input of one block
	maxMessage  = 256 << 10 // all of a message
	maxLabel    = 256       // an id, a name
	maxNote     = 1 << 10   // the text of a block of kind other
	blockCost   = 128       // what a block counts besides its texts
	blockMargin = 2 << 10   // at least this much room is left for a further block
)

// builder puts a message together and keeps its bounds.
type builder struct {
	m    hub.TranscriptMessage
	room int
	cut  int
}

func newMessage(id, role string, at hub.Micros) *builder {
	return &builder{room: maxMessage - blockCost - len(id),
		m: hub.TranscriptMessage{ID: id, Role: role, At: at, Blocks: []hub.TranscriptBlock{}}}
}

func (b *builder) done() message {
	return message{TranscriptMessage: b.m, cut: b.cut, size: maxMessage - b.room}
}

func (b *builder) text(s string) { b.add(hub.TranscriptBlock{Kind: hub.BlockText, Text: s}) }

func (b *builder) thinking(s string) { b.add(hub.TranscriptBlock{Kind: hub.BlockThinking, Text: s}) }

// other notes what is not read, by its kind.
func (b *builder) other(kind, text string) {
	if kind == "" {
		kind = "record"
	}
	text, _ = shorten(clean(text), maxNote)
	b.add(hub.TranscriptBlock{Kind: hub.BlockOther, Name: kind, Text: text})
}

// explain makes a message of the role other say what it came from.
func (b *builder) explain(kind string, raw []byte) {
	if b.m.Role == roleOther && len(b.m.Blocks) == 0 {
		b.other(kind, excerpt(raw))
	}
}

// image notes an image by its media type, and nothing else of it.
func (b *builder) image(media string) {
	if !strings.HasPrefix(media, "image/") {
		media = "image/*"
	}
	b.add(hub.TranscriptBlock{Kind: hub.BlockImageRef, Name: media})
}

func (b *builder) call(id, name string, input json.RawMessage) {
	b.add(hub.TranscriptBlock{Kind: hub.BlockToolCall, Name: name, Call: id, Input: input})
}

func (b *builder) result(id, text string, failed bool) {
	b.add(hub.TranscriptBlock{Kind: hub.BlockToolResult, Call: id, Text: text, Error: failed})
}

// add cleans a block and cuts it to the room that is left. Without room it is
// only counted.
func (b *builder) add(block hub.TranscriptBlock) {
	if b.room < blockMargin {
		b.cut++
		return
	}
	block.Name, block.Call = label(block.Name), label(block.Call)
	b.room -= blockCost + len(block.Name) + len(block.Call)
	var cut bool
	if block.Input != nil {
		block.Input, cut = cleanInput(block.Input, b.limit())
		b.room -= len(block.Input)
	} else {
		block.Text, cut = shorten(clean(block.Text), b.limit())
		b.room -= len(block.Text)
	}
	if cut {
		b.cut++
	}
	b.m.Blocks = append(b.m.Blocks, block)
}

func (b *builder) limit() int { return max(min(maxBlock, b.room-blockMargin/2), 0) }

// shorten cuts s to about limit bytes, between characters, with a mark that
// says how many bytes are left out.
func shorten(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return fmt.Sprintf("%s…[+%d bytes]", s[:limit], len(s)-limit), true
}
