package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// reply answers with body under status, or with the problem that err is.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, status int, body any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	raw, err := encode(body)
	if err != nil {
		s.fail(w, r, fmt.Errorf("encoding an answer: %w", err))
		return
	}
	s.write(w, r, status, jsonType, raw)
}

// encode marshals without escaping HTML: bodies are code more often than not.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, media string, raw []byte) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(raw)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	s.send(w, r, raw)
}

// send writes within the write deadline. A client that does not read is gone.
func (s *Server) send(w http.ResponseWriter, r *http.Request, raw []byte) {
	writeBy(w, time.Now().Add(writeTimeout))
	if _, err := w.Write(raw); err != nil {
		s.cfg.Log.Debug("an answer was not read", "route", routeOf(r), "error", err)
	}
}
