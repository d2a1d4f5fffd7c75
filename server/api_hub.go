package server

import (
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// apiHandlers implements the generated interface of the API mux.
type apiHandlers struct{ *Server }

var _ api.ServerInterface = apiHandlers{}

// GetHealth answers as long as the process does.
func (s apiHandlers) GetHealth(w http.ResponseWriter, r *http.Request) { s.text(w, r, "ok\n") }

// GetReady tells whether the hub takes new work.
func (s apiHandlers) GetReady(w http.ResponseWriter, r *http.Request) {
	if s.draining() {
		s.fail(w, r, errDraining)
		return
	}
	if err := s.cfg.Ready(); err != nil {
		s.fail(w, r, err)
		return
	}
	s.text(w, r, "ready\n")
}

func (s *Server) text(w http.ResponseWriter, r *http.Request, body string) {
	s.write(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte(body))
}

// GetMetrics shows all metrics.
func (s apiHandlers) GetMetrics(w http.ResponseWriter, r *http.Request) {
	writeBy(w, time.Now().Add(writeTimeout))
	s.cfg.Metrics.Handler().ServeHTTP(w, r)
}

// getDocument shows the API's own OpenAPI document: JSON, which is YAML too.
func (s *Server) getDocument(w http.ResponseWriter, r *http.Request) {
	media := jsonType
	if r.URL.Path == "/openapi.yaml" {
		media = "application/yaml"
	}
	s.write(w, r, http.StatusOK, media, s.spec)
}

// GetHub shows what this hub is and how much it holds.
func (s apiHandlers) GetHub(w http.ResponseWriter, r *http.Request) {
	var counts store.Counts
	err := s.cfg.Store.View(r.Context(), func(rx store.Rx) (err error) {
		counts, err = rx.Counts()
		return err
	})
	info := s.cfg.Hub
	info.Fingerprint = s.cfg.Fingerprint()
	s.reply(w, r, http.StatusOK, hubStatus(info, counts), err)
}

func hubStatus(in Info, n store.Counts) api.HubStatus {
	var out api.HubStatus
	h := &out.Hub
	h.HubId, h.Name, h.Version, h.Url, h.Fingerprint = in.HubID, in.Name, in.Version, in.URL, in.Fingerprint
	h.StoreId, h.StoreEpoch, h.Features, h.StartedAt = in.StoreID, in.StoreEpoch, texts(in.Features), at(in.StartedAt)
	c := &out.Counts
	c.Runs, c.Tasks, c.DispatchesLive, c.Messages = n.Runs, n.Tasks, n.DispatchesLive, n.Messages
	return out
}

// GetRequest shows the receipt of one of the caller's own requests.
func (s apiHandlers) GetRequest(w http.ResponseWriter, r *http.Request, request string) {
	p := callOf(r).principal
	var out api.RequestDetail
	err := s.cfg.Store.View(r.Context(), func(rx store.Rx) error {
		rec, err := receipt.Show(rx, p, hub.RequestID(request))
		if err != nil {
			return err
		}
		out, err = s.requestDetail(rx, rec)
		return err
	})
	s.reply(w, r, http.StatusOK, out, err)
}
