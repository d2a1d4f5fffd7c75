package transcript

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// What stands where something was left out.
const (
	imageMark = "[image]"
	dataMark  = "[data]"
)

// Paths of images: in quotes with blanks, else without; behind a colon only if
// what follows is not the rest of a URL. A path goes on from a letter, a dot and
// so on, and is then a relative one.
var (
	imageEnding = `\.(?i:` + strings.Join(endings, "|") + `)`
	localStart  = `(?:file://)?(?:/|~/|[A-Za-z]:[\\/]|\\\\)`
	quotedPath  = regexp.MustCompile("([\"'`])" + localStart + "[^\"'`\n]*?" + imageEnding + "([\"'`])")
	barePath    = regexp.MustCompile(`(^|[^\pL\pN_.~/\\:%)}\]-])` + localStart + "[^\\s\"'`<>()\\[\\]]*" + imageEnding + `\b`)
	colonPath   = regexp.MustCompile(":/[^/\\s\"'`<>()\\[\\]][^\\s\"'`<>()\\[\\]]*" + imageEnding + `\b`)
	sourceNote  = regexp.MustCompile(`\[Image: source: [^\]\n]*\]`)
	dataURL     = regexp.MustCompile(`data:[A-Za-z0-9.+/;=_-]{0,200};base64,[A-Za-z0-9+/=_-]*`)
	endings     = []string{"png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "heif", "avif", "svg", "ico"}
)

// clean makes text of an agent text that a message may carry: valid, without
// NULs, capability tokens, images inside it and absolute paths of images.
// A relative path stays: it is the repository's.
func clean(s string) string {
	return withoutImages(safetext.Redact(hub.PlainText([]byte(s))))
}

func withoutImages(s string) string {
	if strings.Contains(s, ";base64,") {
		s = dataURL.ReplaceAllString(s, dataMark)
	}
	if !hasEnding(s) {
		return s
	}
	s = sourceNote.ReplaceAllString(s, imageMark)
	s = quotedPath.ReplaceAllString(s, "${1}"+imageMark+"${2}")
	s = barePath.ReplaceAllString(s, "${1}"+imageMark)
	return colonPath.ReplaceAllString(s, ":"+imageMark)
}

// hasEnding spares most texts the search for paths.
func hasEnding(s string) bool {
	for {
		_, rest, found := strings.Cut(s, ".")
		if !found {
			return false
		}
		for _, ending := range endings {
			if len(rest) >= len(ending) && strings.EqualFold(rest[:len(ending)], ending) {
				return true
			}
		}
		s = rest
	}
}

// label makes an id or a name.
func label(s string) string {
	s, _ = shorten(clean(s), maxLabel)
	return s
}

// cleanInput cleans every string of a JSON document, which keeps its order. One
// that is longer than the limit becomes a JSON string of its beginning.
func cleanInput(raw json.RawMessage, limit int) (json.RawMessage, bool) {
	out, err := rewrite(raw, clean)
	if err != nil {
		out = quote(clean(string(raw)))
	}
	if len(out) <= limit {
		return out, false
	}
	text := string(out)
	if first(out) == '"' {
		text = str(out)
	}
	// Quoting makes most texts a little longer and some six times as long.
	for room := limit; ; room /= 2 {
		short, _ := shorten(text, room)
		if quoted := quote(short); len(quoted) <= limit || room < 64 {
			return quoted, true
		}
	}
}

// excerpt is the beginning of a record that no rule is known for, without what
// may be somebody's data.
func excerpt(raw []byte) string {
	out, err := rewrite(raw, withoutData)
	if err != nil {
		return withoutData(string(raw))
	}
	return string(out)
}

var longData = regexp.MustCompile(`[A-Za-z0-9+/_-]{256,}={0,2}`)

func withoutData(s string) string { return longData.ReplaceAllString(clean(s), dataMark) }

// rewrite copies one JSON document without white space and with every string,
// names too, as f makes it.
func rewrite(raw []byte, f func(string) string) ([]byte, error) {
	w := rewriter{dec: json.NewDecoder(bytes.NewReader(raw)), f: f}
	w.dec.UseNumber()
	if err := w.value(); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

type rewriter struct {
	dec *json.Decoder
	f   func(string) string
	out bytes.Buffer
}

func (w *rewriter) value() error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return w.members('{', '}', true)
		}
		return w.members('[', ']', false)
	case string:
		w.out.Write(quote(w.f(t)))
		return nil
	default:
		raw, err := json.Marshal(t)
		w.out.Write(raw)
		return err
	}
}

func (w *rewriter) members(open, shut byte, named bool) error {
	w.out.WriteByte(open)
	for n := 0; w.dec.More(); n++ {
		if n > 0 {
			w.out.WriteByte(',')
		}
		if named {
			if err := w.value(); err != nil {
				return err
			}
			w.out.WriteByte(':')
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.out.WriteByte(shut)
	_, err := w.dec.Token()
	return err
}

// quote writes a JSON string without escapes where UTF-8 does.
func quote(s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // a string can always be encoded
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
