package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

// What a stream of wake-ups sends: an event for mail, a comment as a sign of life.
const (
	mailEvent  = "event: mail\ndata: {}\n\n"
	signOfLife = ":\n\n"
)

// StreamMailbox sends wake-ups as server-sent events. A stream counts as a wait.
// One that cannot begin is refused with its status; later the stream just ends,
// and whoever listens asks again.
func (s apiHandlers) StreamMailbox(w http.ResponseWriter, r *http.Request, box api.BoxParam) {
	leave, ok := s.mayWait(w, r)
	if !ok {
		return
	}
	defer leave()
	out := &stream{w: w}
	err := s.cfg.Mail.Listen(r.Context(), callOf(r).principal, hub.Box(box), s.keepAlive, out.tell)
	if err != nil && !out.begun && !errors.Is(err, errLeft) {
		s.fail(w, r, err)
	}
}

// stream is the answer to one listener.
type stream struct {
	w     http.ResponseWriter
	begun bool
}

func (t *stream) tell(mail bool) error {
	t.begin()
	text := signOfLife
	if mail {
		text = mailEvent
	}
	return t.flush(t.write([]byte(text)))
}

// begin sends the head, once.
func (t *stream) begin() {
	if t.begun {
		return
	}
	t.begun = true
	h := t.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	t.w.WriteHeader(http.StatusOK)
}

// write bounds the time that a listener may take to read.
func (t *stream) write(raw []byte) error {
	writeBy(t.w, time.Now().Add(keepAliveTimeout))
	if _, err := t.w.Write(raw); err != nil {
		return errLeft
	}
	return nil
}

// flush sends what was written, unless writing it failed.
func (t *stream) flush(err error) error {
	if err != nil {
		return err
	}
	if err := http.NewResponseController(t.w).Flush(); err != nil {
		return errLeft
	}
	return nil
}
