package spool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
	"github.com/wavehub/wavehub/internal/spool"
)

func TestWhatIsAppendedIsDrainedInOrder(t *testing.T) {
	p := newPlace(t)
	lines, texts := numbered(20)
	appended(t, p, lines...)
	if ids, err := spool.Waiting(p.Root); err != nil || len(ids) != 1 || ids[0] != p.Dispatch {
		t.Fatalf("waiting are %v %v", ids, err)
	}
	if pending, err := spool.Pending(p); err != nil || !pending {
		t.Fatalf("pending is %v %v", pending, err)
	}
	if raw := content(t, p); bytes.Contains(raw, []byte(token)) || bytes.Count(raw, []byte("\n")) != 20 {
		t.Fatalf("the spool is %s", raw)
	}
	var h home
	h.drain(t, p)
	h.wants(t, texts...)
	gone(t, p)
	h.drain(t, p) // nothing is no error
	gone(t, p)
}

func TestPlaceIsReadFromItsPath(t *testing.T) {
	p := newPlace(t)
	if got, err := spool.PlaceOf(p.File()); err != nil || got != p {
		t.Errorf("the place is %+v %v", got, err)
	}
	for _, path := range []string{"", "spool-x.jsonl", filepath.Join(p.Root, "x", filepath.Base(p.File())), p.File() + "x", filepath.Join(filepath.Dir(p.File()), "dispatch.json")} {
		if got, err := spool.PlaceOf(path); err == nil {
			t.Errorf("%q is %+v", path, got)
		}
	}
}

func TestPrivacy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are access lists on Windows; package safefile tests them")
	}
	p := newPlace(t)
	appended(t, p, status("x"))
	err := filepath.WalkDir(p.Root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Any prefix of a spool gives its whole lines and no other, and the next line
// that is appended comes directly behind them.
func TestAnyPrefixOfATornFile(t *testing.T) {
	whole := newPlace(t)
	lines, texts := numbered(5)
	appended(t, whole, lines...)
	raw := content(t, whole)
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, len(raw)).Draw(r, "bytes")
		p := copyOf(t, whole)
		put(t, p, raw[:n])
		kept := texts[:bytes.Count(raw[:n], []byte("\n"))]
		if rapid.Bool().Draw(r, "append") {
			appended(t, p, status("next"))
			kept = append(append([]string{}, kept...), "next")
		}
		var h home
		h.drain(t, p)
		if len(h.refused) != 0 {
			r.Fatalf("a prefix of %d bytes has refused lines", n)
		}
		h.wants(t, kept...)
		gone(t, p)
	})
}

// A torn line alone is nothing to go behind.
func TestBehindNothingNothingIsAppended(t *testing.T) {
	p := newPlace(t)
	behind := func() bool {
		there, err := spool.AppendBehind(t.Context(), p, token, status("late"))
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	if behind() {
		t.Fatal("a line was appended behind none")
	}
	appended(t, p, status("first"))
	put(t, p, content(t, p)[:20])
	if behind() {
		t.Fatal("a line was appended behind a torn one")
	}
	var h home
	h.drain(t, p)
	appended(t, p, status("first"))
	if !behind() {
		t.Fatal("the line was not appended")
	}
	h.drain(t, p)
	h.wants(t, "first", "late")
}

// A line that was changed anywhere is refused, and the others are not.
func TestADamagedLineInTheMiddle(t *testing.T) {
	whole := newPlace(t)
	lines, texts := numbered(3)
	appended(t, whole, lines...)
	raw := content(t, whole)
	first := bytes.IndexByte(raw, '\n') + 1
	second := first + bytes.IndexByte(raw[first:], '\n')
	rapid.Check(t, func(r *rapid.T) {
		at := rapid.IntRange(first, second-1).Draw(r, "at")
		to := rapid.Byte().Filter(func(b byte) bool { return b != '\n' && b != raw[at] }).Draw(r, "byte")
		damaged := bytes.Clone(raw)
		damaged[at] = to
		p := copyOf(t, whole)
		put(t, p, damaged)
		var h home
		h.drain(t, p)
		h.wants(t, texts[0], texts[2])
		if len(h.refused) != 1 || !bytes.Equal(h.refused[0].Raw, damaged[first:second]) {
			r.Fatalf("refused are %+v", h.refused)
		}
		gone(t, p)
	})
}

func TestALineOfAnotherCapabilityIsNotProven(t *testing.T) {
	p := newPlace(t)
	if err := spool.Append(t.Context(), p, "whd_other", status("forged")); err != nil {
		t.Fatal(err)
	}
	var h home
	h.drain(t, p)
	if len(h.taken) != 0 || len(h.refused) != 1 || h.refused[0].Err != nil {
		t.Errorf("taken are %q, refused %+v", h.taken, h.refused)
	}
}

// A drain that stops, or that is killed at any line, leaves that line and all
// behind it; nothing is lost or taken twice.
func TestADrainThatIsCut(t *testing.T) {
	lines, texts := numbered(6)
	errStop := errors.New("stop")
	for cut := range lines {
		p := newPlace(t)
		appended(t, p, lines...)
		var h home
		var killed spool.Place
		n := 0
		err := spool.Drain(t.Context(), p, func(e spool.Entry) error {
			if n++; n > cut {
				killed = copyOf(t, p) // before this line is taken
				return errStop
			}
			return h.take(e)
		})
		if !errors.Is(err, errStop) {
			t.Fatalf("the drain ended with %v", err)
		}
		h.wants(t, texts[:cut]...)
		after := home{taken: append([]string{}, h.taken...), seen: map[hub.RequestID]bool{}}
		for _, l := range lines[:cut] {
			after.seen[l.Request] = true
		}
		after.drain(t, killed)
		after.wants(t, texts...)
		if got := bytes.Count(content(t, p), []byte("\n")); got != len(lines)-cut {
			t.Fatalf("%d lines are left behind %d", got, cut)
		}
		h.drain(t, p)
		h.wants(t, texts...)
		gone(t, p)
	}
}

// A crash between the end of the spool and that of its mark leaves a mark alone.
func TestAMarkAloneIsRemoved(t *testing.T) {
	p := newPlace(t)
	appended(t, p, status("x"))
	if err := os.Remove(p.File()); err != nil {
		t.Fatal(err)
	}
	var h home
	h.drain(t, p)
	h.wants(t)
	gone(t, p)
}

func TestAFullSpoolTakesOneReportMore(t *testing.T) {
	p := newPlace(t)
	lines, _ := numbered(1)
	appended(t, p, lines...)
	one := content(t, p)
	put(t, p, bytes.Repeat(one, spool.MaxLines))
	full(t, p, status("one more"))
	appended(t, p, lineOf("worker_done", "the end"))
	full(t, p, lineOf("worker_done", "another end"))
	var h home
	h.drain(t, p)
	h.wants(t, "line-0", "the end")
	appended(t, p, status("again"))
}

func TestAFullSpoolInBytes(t *testing.T) {
	p := newPlace(t)
	big := strings.Repeat("x", 1<<20)
	for range 7 {
		appended(t, p, status(big))
	}
	full(t, p, status(big))
	appended(t, p, status("a small one fits"))
	appended(t, p, lineOf("worker_done", big))
	full(t, p, lineOf("worker_done", big))
	full(t, newPlace(t), status(big+big)) // no line is that long
}

func full(t *testing.T, p spool.Place, l spool.Line) {
	t.Helper()
	if err := spool.Append(t.Context(), p, token, l); !errors.Is(err, spool.ErrFull) {
		t.Fatalf("the spool was not full: %v", err)
	}
}

// A file that is no spool is set aside as a whole, once told.
func TestWhatIsTooLargeIsSetAside(t *testing.T) {
	p := newPlace(t)
	appended(t, p, status("x"))
	put(t, p, bytes.Repeat([]byte("x"), spool.MaxBytes+spool.MaxLine+1))
	var h home
	h.drain(t, p)
	if len(h.refused) != 1 || !errors.Is(h.refused[0].Err, safefile.ErrTooLarge) {
		t.Fatalf("refused are %+v", h.refused)
	}
	r, err := spool.Reject(p, h.refused[0])
	if err != nil || !hub.ValidID(hub.PrefixMessage, string(r.Notice)) {
		t.Fatalf("it is rejected as %+v %v", r, err)
	}
	if info, err := os.Stat(filepath.Join(filepath.Dir(p.File()), "rejected", r.File)); err != nil || info.Size() != spool.MaxBytes+spool.MaxLine+1 {
		t.Fatalf("it is kept as %v %v", info, err)
	}
	gone(t, p)
}

func TestRefusedLinesAreKeptOnceAndBounded(t *testing.T) {
	p := newPlace(t)
	lines, _ := numbered(spool.MaxRejected + 2)
	appended(t, p, lines...)
	var all []spool.Rejected
	reject := func(e spool.Entry) error {
		r, err := spool.Reject(p, e)
		again, errAgain := spool.Reject(p, e)
		if again != r {
			t.Errorf("rejected again it is %+v, not %+v", again, r)
		}
		all = append(all, r)
		return errors.Join(err, errAgain)
	}
	if err := spool.Drain(t.Context(), p, reject); err != nil {
		t.Fatal(err)
	}
	notices := map[hub.MessageID]bool{}
	for i, r := range all {
		notices[r.Notice] = true
		if kept := r.File != ""; kept != (i < spool.MaxRejected) {
			t.Errorf("line %d is kept: %v", i, kept)
		}
	}
	if len(notices) != spool.MaxRejected+1 {
		t.Errorf("%d notices, want one for each kept line and one for the rest", len(notices))
	}
	files, err := os.ReadDir(filepath.Join(filepath.Dir(p.File()), "rejected"))
	if err != nil || len(files) != spool.MaxRejected {
		t.Errorf("%d files are kept %v", len(files), err)
	}
}

// Whatever JSON a body is, what is drained means the same.
func TestBodiesComeThroughUnchanged(t *testing.T) {
	p := newPlace(t)
	bodies := []string{`{"type":"status", "payload": {"n": 12345678901234567890.10, "<&>": "\u2028 \u003c \"\n"}}`, `{"a":[1,2,{"b":null}]}`}
	for _, b := range bodies {
		appended(t, p, spool.Line{Request: hub.NewRequestID(), Operation: "sendMessage", Body: json.RawMessage(b)})
	}
	var got []string
	err := spool.Drain(t.Context(), p, func(e spool.Entry) error {
		got = append(got, string(e.Line.Body))
		return e.Err
	})
	if err != nil || len(got) != len(bodies) {
		t.Fatalf("drained are %q %v", got, err)
	}
	for i := range bodies {
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(bodies[i])); err != nil || got[i] != want.String() {
			t.Errorf("body %d is %s, want %s %v", i, got[i], want.String(), err)
		}
	}
	if err := spool.Append(t.Context(), p, token, spool.Line{Request: hub.NewRequestID(), Body: json.RawMessage("{")}); err == nil {
		t.Error("a body that is no JSON was spooled")
	}
}

func TestALockThatIsHeldIsWaitedForOnlyAsLongAsAsked(t *testing.T) {
	p := newPlace(t)
	appended(t, p, status("x"))
	err := spool.Drain(t.Context(), p, func(spool.Entry) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := spool.Append(ctx, p, token, status("y")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the append ended with %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	gone(t, p)
}

func TestAFolderThatCannotBeWritten(t *testing.T) {
	for name, spoil := range map[string]func(p spool.Place) error{
		"lock": func(p spool.Place) error { return os.Mkdir(p.File()+".lock", 0o700) },
		"file": func(p spool.Place) error { return os.Mkdir(p.File(), 0o700) },
		"mark": func(p spool.Place) error { return os.WriteFile(filepath.Join(p.Root, "spooled"), nil, 0o600) },
	} {
		p := newPlace(t)
		if err := os.MkdirAll(filepath.Dir(p.File()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := spoil(p); err != nil {
			t.Fatal(err)
		}
		if err := spool.Append(t.Context(), p, token, status("x")); err == nil || errors.Is(err, safefile.ErrUncertain) {
			t.Errorf("%s: the append ended with %v", name, err)
		}
		if info, err := os.Lstat(p.File()); err == nil && info.Mode().IsRegular() {
			t.Errorf("%s: something was written", name)
		}
	}
}
