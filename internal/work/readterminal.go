package work

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// terminalPage is the end of a terminal's output, or with a cursor what has come
// behind it. A terminal whose directory is gone has what was kept of it.
func (s *Service) terminalPage(ctx context.Context, a hub.Attachment, q OutputQuery, at outputPlace, page hub.OutputPage) (hub.OutputPage, error) {
	page.Source, page.SourceIdentity = sourceTerminal, string(a.Terminal)
	page.Terminal = &hub.TerminalText{}
	if a.Process == nil {
		return page, nil
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLines
	}
	var next int64
	var err error
	switch {
	case q.Cursor != "":
		var from int64
		if from, err = strconv.ParseInt(string(at.At), 10, 64); err == nil {
			next, err = s.outputBehind(ctx, a, from, limit, page)
		}
	case a.Agent.Mode == hub.ModeTUI:
		next, err = s.screen(ctx, a, limit, page.Terminal)
	default:
		next, err = s.lastLines(ctx, a, limit, page.Terminal)
	}
	if hub.IsCode(err, hub.CodeTerminalNotFound) {
		return s.archived(ctx, a, sourceTerminal, page)
	}
	if err != nil {
		return page, err
	}
	cursor, err := s.seal(outputPlace{a.Dispatch, processOf(a), sourceTerminal, page.SourceIdentity, json.RawMessage(strconv.FormatInt(next, 10))})
	page.Cursor = &cursor
	return page, err
}

// written is how many bytes the worker has written to its terminal so far.
func (s *Service) written(ctx context.Context, a hub.Attachment) (int64, error) {
	if a.Process == nil {
		return 0, nil
	}
	tail, err := s.Terminals.Tail(ctx, a.Terminal, 0)
	if hub.IsCode(err, hub.CodeTerminalNotFound) {
		return 0, nil
	}
	return tail.Total, err
}

// screen is the rendered screen with the lines that have scrolled out of it.
func (s *Service) screen(ctx context.Context, a hub.Attachment, limit int, out *hub.TerminalText) (int64, error) {
	total, err := s.written(ctx, a)
	if err != nil {
		return 0, err
	}
	scr, err := s.Terminals.Screen(ctx, a.Terminal, hub.ScreenQuery{Scrollback: limit})
	if err != nil {
		return 0, err
	}
	scr = cutScreen(maskScreen(scr), maxScreenText)
	lines := append(scr.Scrollback, scr.Lines...)
	cut := max(0, len(lines)-max(limit, len(scr.Lines)))
	out.Text, out.Truncated = strings.TrimRight(strings.Join(lines[cut:], "\n"), "\n"), scr.Truncated || cut > 0
	if out.Text != "" {
		out.Text += "\n"
	}
	return total, nil
}

// lastLines is the end of the output as lines.
func (s *Service) lastLines(ctx context.Context, a hub.Attachment, limit int, out *hub.TerminalText) (int64, error) {
	tail, err := s.Terminals.Tail(ctx, a.Terminal, maxOutputBytes)
	if err != nil {
		return 0, err
	}
	data, cut := lastLines(tail.Data, limit)
	out.Truncated = cut || tail.Truncated
	if tail.Truncated && !cut {
		data = data[bytes.IndexByte(data, '\n')+1:] // its first line may be a part of one
	}
	out.Text = plainOutput(data)
	return tail.Total, nil
}

// lastLines is the end of data that has at most n lines, and whether that is less
// than all.
func lastLines(data []byte, n int) ([]byte, bool) {
	end := len(bytes.TrimSuffix(data, []byte("\n")))
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(data[:end], '\n')
		if i < 0 {
			return data, false
		}
		end = i
	}
	return data[end+1:], true
}

// outputBehind is what was written behind an offset, in whole lines while more
// may come, and the offset behind it.
func (s *Service) outputBehind(ctx context.Context, a hub.Attachment, from int64, limit int, page hub.OutputPage) (int64, error) {
	r, err := s.Terminals.Output(ctx, a.Terminal, from, maxNewBytes)
	if err != nil {
		return 0, err
	}
	data := wholeLines(r.Data, limit, page.Status.Terminal != hub.Live)
	page.Terminal.Text, page.Terminal.Truncated = plainOutput(data), r.From > from
	return r.From + int64(len(data)), nil
}

// maxNewBytes is how much one page shows of what has come: whatever it holds, it
// fits in one answer of a peer.
const maxNewBytes = 128 << 10

// A line longer than partialLine is shown before it is complete, but for its last
// heldBack bytes: no token or character is torn apart.
const (
	partialLine = 4 << 10
	heldBack    = 128
)

// wholeLines is the beginning of data that ends with a line, of at most n lines.
// The last line may be incomplete only if nothing will complete it, or it is
// long.
func wholeLines(data []byte, n int, ended bool) []byte {
	at := 0
	for ; n > 0; n-- {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	if n == 0 || !ended && len(data)-at < partialLine {
		return data[:at]
	}
	if ended {
		return data
	}
	end := len(data) - heldBack
	for end > at && !utf8.RuneStart(data[end]) {
		end--
	}
	return data[:end]
}

// plainOutput is output as text: without control sequences and tokens.
func plainOutput(data []byte) string { return withoutEscapes(redact(data)) }

var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`)

// withoutEscapes removes what steers a terminal and is no text.
func withoutEscapes(s string) string { return escapes.ReplaceAllString(s, "") }
