package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/wavehub/wavehub/internal/safetext"
)

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// emit writes the answer to stdout: with --json as received, else as human
// prints it.
func (a *app) emit(raw json.RawMessage, human func(p *printer)) error {
	p := &printer{out: bufio.NewWriter(a.stdout), tty: isTerminal(a.stdout)}
	if a.flags.json {
		_, _ = p.out.Write(raw) // bufio keeps the error for Flush
		_ = p.out.WriteByte('\n')
	} else {
		human(p)
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// emitValue is emit for what this program itself knows.
func (a *app) emitValue(v any, human func(p *printer)) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return a.emit(raw, human)
}

// printer writes text for people; write errors stay in its buffer until emit.
type printer struct {
	out *bufio.Writer
	tty bool
}

// cellWidth bounds a cell, in characters.
const cellWidth = 120

// line prints one line; the arguments are cleaned.
func (p *printer) line(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = safetext.Line(s, 2000)
		}
	}
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// text prints a text of many lines, cleaned.
func (p *printer) text(s string) {
	if s == "" {
		return
	}
	_, _ = p.out.WriteString(safetext.Clean(s))
	if !strings.HasSuffix(s, "\n") {
		_ = p.out.WriteByte('\n')
	}
}

// table prints aligned columns with a head on a terminal, and tab-separated
// rows without one elsewhere.
func (p *printer) table(head []string, rows [][]string) {
	if !p.tty {
		p.rows(p.out, rows)
		return
	}
	w := tabwriter.NewWriter(p.out, 0, 4, 2, ' ', 0)
	p.rows(w, append([][]string{head}, rows...))
	_ = w.Flush() // the error stays in p.out
}

func (p *printer) rows(w io.Writer, rows [][]string) {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = safetext.Line(cell, cellWidth)
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
}

// list prints a table of items and how to read the next page.
func list[T any](p *printer, head []string, items []T, next *string, row func(T) []string) {
	rows := make([][]string, len(items))
	for i, item := range items {
		rows[i] = row(item)
	}
	p.table(head, rows)
	if next != nil {
		p.line("more with: --cursor %s", *next)
	}
}

// or is the text behind p, or alternative for none.
func or(p *string, alternative string) string {
	if p == nil || *p == "" {
		return alternative
	}
	return *p
}
