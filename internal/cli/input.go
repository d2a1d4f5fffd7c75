package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// maxInput bounds what is read from a file or stdin for one field, in bytes.
const maxInput = 8 << 20

// body is a text given as --NAME TEXT or --NAME-file F.
type body struct {
	name, text, file string
	cmd              *cobra.Command
}

// bodyFlags adds --name and --name-file.
func bodyFlags(cmd *cobra.Command, name, help string) *body {
	b := &body{name: name, cmd: cmd}
	cmd.Flags().StringVar(&b.text, name, "", help)
	cmd.Flags().StringVar(&b.file, name+"-file", "", help+", from a file (- for stdin)")
	return b
}

// read returns the text; "" when neither flag was given.
func (b *body) read(a *app) (string, error) {
	if !b.cmd.Flags().Changed(b.name + "-file") {
		return b.text, nil
	}
	if b.cmd.Flags().Changed(b.name) {
		return "", misused(b.cmd, "takes --%s or --%s-file, not both", b.name, b.name)
	}
	return a.readText(b.name+"-file", b.file)
}

// readText reads a whole file, or stdin for "-". It has to be UTF-8.
func (a *app) readText(flag, path string) (string, error) {
	return a.readTextWithin(flag, path, maxInput)
}

// readTextWithin is readText with a limit of its own, in bytes; flag is "" for a
// file that is an argument.
func (a *app) readTextWithin(flag, path string, limit int) (string, error) {
	label := "--" + flag
	if flag == "" {
		label = "FILE"
	}
	raw, err := a.readInput(path, limit)
	if err != nil {
		return "", usage(flag, "%s: %v", label, err)
	}
	if !utf8.Valid(raw) {
		return "", usage(flag, "%s: %s is not valid UTF-8", label, path)
	}
	return string(raw), nil
}

func (a *app) readInput(path string, limit int) ([]byte, error) {
	if path == "-" {
		a.usedStdin = true
		return readAtMost(a.stdin, limit)
	}
	return readFile(path, limit)
}

func readFile(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	raw, err := readAtMost(f, limit)
	return raw, errors.Join(err, f.Close())
}

func readAtMost(r io.Reader, limit int) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(raw) > limit {
		err = fmt.Errorf("there are more than %d bytes", limit)
	}
	return raw, err
}

// readResult reads a result file: JSON is passed on as it is, any other text
// as a JSON string.
func (a *app) readResult(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	text, err := a.readText("result-file", path)
	if err != nil {
		return nil, err
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return json.Marshal(text)
}

// absolute makes paths of this host's file system absolute.
func absolute(flag string, paths ...string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, usage(flag, "%s: %v", flag, err)
		}
		out[i] = abs
	}
	return out, nil
}
