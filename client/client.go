package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// Config says which hub to talk to and with which credential.
type Config struct {
	URL         string // https://host:port
	Fingerprint string // of the hub's key; never empty
	Token       Secret // whu_…, whr_…, whd_… or whw_…; empty sends none
	// Context and Consumer prove a binding: the caller's terminal, or whc_….
	// At most one is usually given; the hub refuses two that disagree.
	Context  string
	Consumer Secret
	// Generation is that of an attached worker's loop, as Attach returned it: once
	// another loop has attached, this one is refused. 0: whichever is the present.
	Generation int64
	// Hub is the name or id of a paired hub that the calls are for, "" for the one
	// at URL, which sends them on. Only the operator's token reaches other hubs.
	Hub string
	// Timeout is how long the hub may stay silent beyond what a call was asked
	// to wait; default 30 s. ConnectTimeout bounds connecting; default 5 s.
	Timeout        time.Duration
	ConnectTimeout time.Duration
}

// Client calls one hub.
type Client struct {
	api     *api.Client
	http    *http.Client
	timeout time.Duration
	// eventSilence is how long a stream of events may be silent.
	eventSilence time.Duration
}

// New validates the configuration; it connects to nothing.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("the hub's URL must be https://host:port, not %q", cfg.URL)
	}
	if cfg.Fingerprint == "" {
		return nil, errors.New("the hub's fingerprint is required: without it a token could reach anybody")
	}
	cfg.Timeout = orDefault(cfg.Timeout, 30*time.Second)
	cfg.ConnectTimeout = orDefault(cfg.ConnectTimeout, 5*time.Second)
	hc := newHTTPClient(cfg)
	core, err := api.NewClient(cfg.URL, api.WithHTTPClient(hc), api.WithRequestEditorFn(credentials(cfg)), api.WithRequestEditorFn(dropUnset))
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return &Client{api: core, http: hc, timeout: cfg.Timeout, eventSilence: eventSilence}, nil
}

// Close drops idle connections. Calls in flight end by themselves.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func orDefault(d, standard time.Duration) time.Duration {
	if d <= 0 {
		return standard
	}
	return d
}

func credentials(cfg Config) api.RequestEditorFn {
	return func(_ context.Context, req *http.Request) error {
		if cfg.Token != "" {
			req.Header.Set("Authorization", "Bearer "+cfg.Token.Reveal())
		}
		if cfg.Context != "" {
			req.Header.Set("Wavehub-Context", cfg.Context)
		}
		if cfg.Generation > 0 {
			req.Header.Set("Wavehub-Generation", strconv.FormatInt(cfg.Generation, 10))
		}
		if cfg.Hub != "" {
			req.Header.Set("Wavehub-Hub", cfg.Hub)
		}
		if cfg.Consumer != "" {
			req.Header.Set("Wavehub-Consumer", cfg.Consumer.Reveal())
		}
		return nil
	}
}

// dropUnset removes query parameters that have their zero value: the generated
// core sends them all, and the hub's schema refuses most of them. An answer that
// is not to be waited for is asked for by that very zero. So is an empty header.
func dropUnset(_ context.Context, req *http.Request) error {
	var kept []string
	answer := strings.HasSuffix(req.URL.Path, "/answer")
	for part := range strings.SplitSeq(req.URL.RawQuery, "&") {
		if answer && part == "wait_ms=0" || !unset(part) {
			kept = append(kept, part)
		}
	}
	req.URL.RawQuery = strings.Join(kept, "&")
	if req.Header.Get(lastEventID) == "" {
		req.Header.Del(lastEventID)
	}
	return nil
}

func unset(parameter string) bool {
	name, value, _ := strings.Cut(parameter, "=")
	switch name {
	case "limit", "wait_ms":
		return value == "" || value == "0"
	case "live", "all":
		return value == "" || value == "false"
	}
	return value == ""
}
