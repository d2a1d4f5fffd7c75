package terminal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// Invariant 9, against a model that keeps everything.
func TestSegmentsKeepTheEnd(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		o, err := newOutput(filepath.Join(dir, outputDir), minCap)
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 40<<10), 0, 12).Draw(t, "sizes") {
			p := bytes.Repeat([]byte{byte(i), byte(n)}, n)[:n]
			o.append(p)
			all = append(all, p...)
		}
		limit := rapid.IntRange(0, 2*minCap).Draw(t, "limit")
		tail, err := readTail(o.dir, limit)
		if err != nil {
			t.Fatal(err)
		}
		kept := len(tail.Data)
		if tail.Total != int64(len(all)) || kept > limit || o.held > o.limit || !bytes.HasSuffix(all, tail.Data) {
			t.Fatalf("total %d of %d, %d bytes of %d, held %d", tail.Total, len(all), kept, limit, o.held)
		}
		if least := min(limit, len(all), minCap-minCap/segmentParts); kept < least {
			t.Fatalf("only %d bytes are kept, want %d", kept, least)
		}
		if tail.Truncated != (kept < len(all)) {
			t.Fatalf("truncated = %v with %d of %d", tail.Truncated, kept, len(all))
		}
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Invariant 9: what cannot be written is counted and does not stop the writer.
func TestLostOutputIsCounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), outputDir)
	o, err := newOutput(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	o.append([]byte("lost"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o.append([]byte("kept"))
	if lost, err := o.result(); lost != 4 || err == nil {
		t.Errorf("lost %d, %v", lost, err)
	}
	tail, err := readTail(dir, 100)
	if err != nil || string(tail.Data) != "kept" {
		t.Errorf("tail %q, %v", tail.Data, err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
}

// Invariant 10.
func TestFramesAreBounded(t *testing.T) {
	var b bytes.Buffer
	if err := writeFrame(&b, kindOutput, make([]byte, maxFrame)); err == nil {
		t.Error("a frame above the limit was written")
	}
	for name, raw := range map[string][]byte{
		"empty":    binary.BigEndian.AppendUint32(nil, 0),
		"too long": binary.BigEndian.AppendUint32(nil, maxFrame+1),
		"cut":      append(binary.BigEndian.AppendUint32(nil, 9), 1, 2),
	} {
		if _, _, err := readFrame(bytes.NewReader(raw)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := writeFrame(&b, kindOutput, []byte("a"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	if kind, payload, err := readFrame(&b); err != nil || kind != kindOutput || string(payload) != "ab" {
		t.Errorf("frame = %d %q %v", kind, payload, err)
	}
	if _, _, err := readFrame(&b); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}
