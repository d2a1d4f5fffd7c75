package server

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// receiveBody reads a request's body within its size and time, and decodes it
// strictly.
func receiveBody(w http.ResponseWriter, r *http.Request, c *call) error {
	if c.op.body == nil {
		if r.ContentLength != 0 {
			return hub.Invalid("body", "this operation takes none")
		}
		return nil
	}
	if err := checkMedia(r, c.op); err != nil {
		return err
	}
	if r.ContentLength > c.op.maxBody {
		return tooLarge(c.op)
	}
	readBy(w, time.Now().Add(bodyTimeout))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, c.op.maxBody))
	readBy(w, time.Time{})
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(c.op)
	}
	if err != nil {
		return hub.Errorf(hub.CodeInvalidJson, "the body did not arrive whole")
	}
	if c.raw = raw; len(raw) == 0 {
		return nil
	}
	c.value, err = parseWithin(raw, c.op.maxValues())
	return err
}

func tooLarge(o *operation) error {
	return hub.Errorf(hub.CodeTooLarge, "the body of %s has at most %d bytes", o.id, o.maxBody)
}

// checkMedia wants JSON, except where there is no body and none is needed.
func checkMedia(r *http.Request, o *operation) error {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return hub.Errorf(hub.CodeUnsupportedMediaType, "compressed bodies are not taken")
	}
	given := r.Header.Get("Content-Type")
	if given == "" && r.ContentLength == 0 && !o.required {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	if err != nil || media != jsonType {
		return hub.Errorf(hub.CodeUnsupportedMediaType, "the Content-Type must be %s", jsonType)
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return hub.Errorf(hub.CodeUnsupportedMediaType, "the charset must be utf-8")
	}
	return nil
}

// The deadlines of a connection outlive a request on it. Errors of setting
// them are not looked at: a connection that cannot is closed, and the next
// read or write says so, or it is no network connection and has none.

func freshDeadlines(w http.ResponseWriter) {
	readBy(w, time.Time{})
	writeBy(w, time.Time{})
}

func readBy(w http.ResponseWriter, t time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(t)
}

func writeBy(w http.ResponseWriter, t time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(t)
}
