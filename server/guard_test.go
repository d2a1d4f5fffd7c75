package server

import (
	"net/http"
	"strings"
	"testing"
)

// TestGuardOrder breaks one more guard with each step, from the last to the
// first: always the first broken one answers.
func TestGuardOrder(t *testing.T) {
	w := newWorld(t)
	q := request{method: "POST", path: "/v1/runs", body: `{"objective":7}`, token: w.operator, key: "bad"}
	step := func(code string) {
		t.Helper()
		if got := w.do(q); got.code() != code {
			t.Fatalf("want %s, got %d %s", code, got.status, got.raw)
		}
	}
	step("invalid_argument")
	q.token = w.reader
	step("out_of_scope")
	q.token = tokenOf("whu_", "nobody")
	step("invalid_token")
	q.body = `{"a":1,"a":1}`
	step("invalid_json")
	q.body = strings.Repeat(" ", otherBody+1)
	step("too_large")
	q.header = map[string]string{"Content-Type": "text/html"}
	step("unsupported_media_type")
	q.method = "PUT"
	step("method_not_allowed")
	q.header["Sec-Fetch-Site"] = "none"
	step("origin_forbidden")
	q.host = "rebound.example"
	step("host_forbidden")
}

func TestHosts(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Hosts = []string{"Hub.Example:7443"} })
	for host, ok := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:1": true, "127.8.8.8": true, "localhost:7443": true, "LOCALHOST": true, "[::1]:7443": true, "[::1]": true,
		"hub.example": true, "hub.example:9": true, "hub.example.": true,
		"evil.example": false, "localhost.evil.example": false, "10.0.0.1": false, "127.0.0.1.evil.example": false, "[::2]:1": false,
	} {
		got := w.do(request{method: "GET", path: "/healthz", host: host})
		if (got.status == 200) != ok || !ok && got.status != 421 {
			t.Errorf("%s: %d", host, got.status)
		}
	}
	q := request{method: "GET", path: "/healthz"}.http()
	q.Host = ""
	if got := serve(t, w.server.API(), q); got.status != 421 {
		t.Errorf("no host: %d", got.status)
	}
}

func TestBrowsersAreNotServed(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, value string
		ok          bool
	}{
		{"Origin", "null", false}, {"Origin", "", false}, {"Sec-Fetch-Site", "none", false}, {"Sec-Fetch-Dest", "empty", false},
		{"Sec-Fetch-User", "?1", false}, {"Sec-Fetch-Mode", "navigate", false}, {"Sec-Fetch-Mode", "no-cors", false}, {"Sec-Fetch-Mode", "cors", true},
	} {
		q := request{method: "GET", path: "/v1/runs", token: w.operator, header: map[string]string{c.name: c.value}}
		if got := w.do(q); (got.status == 200) != c.ok || !c.ok && got.code() != "origin_forbidden" {
			t.Errorf("%s: %q: %d", c.name, c.value, got.status)
		}
		q.path, q.token = "/openapi.yaml", ""
		if got := w.do(q); got.status != 200 || !strings.Contains(got.raw, `"openapi"`) {
			t.Errorf("the document with %s: %q: %d", c.name, c.value, got.status)
		}
	}
	if got := w.do(request{method: "POST", path: "/openapi.yaml", header: map[string]string{"Origin": "x"}}); got.code() != "origin_forbidden" {
		t.Errorf("POST of the document: %d", got.status)
	}
}

func TestAddressesAndMethods(t *testing.T) {
	w := newWorld(t)
	if got := w.do(request{method: "GET", path: "/v2"}); got.status != 404 || got.code() != "not_found" {
		t.Errorf("unknown path: %d %s", got.status, got.raw)
	}
	for _, c := range []struct{ method, path, allow string }{
		{"PUT", "/v1/runs", "GET, POST"}, {"POST", "/v1/runs/r", "GET"}, {"HEAD", "/v1/runs", "GET, POST"}, {"OPTIONS", "/v1/runs/r/bind", "POST"},
		{"DELETE", "/openapi.json", "GET"},
	} {
		got := send(t, w.server.API(), request{method: c.method, path: c.path})
		if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q", c.method, c.path, got.status, got.header.Get("Allow"))
		}
	}
}

func TestOpenAddresses(t *testing.T) {
	refuse := error(nil)
	w := newWorld(t, func(c *Config) { c.Ready = func() error { return refuse } })
	if got := w.must(200, request{method: "GET", path: "/healthz"}); got.raw != "ok\n" {
		t.Errorf("healthz: %q", got.raw)
	}
	w.must(200, request{method: "GET", path: "/readyz"})
	w.must(401, request{method: "GET", path: "/metrics"})
	text := w.must(200, request{method: "GET", path: "/metrics", token: w.reader}).raw
	if !strings.Contains(text, `wavehub_requests_total{route="GET /healthz",status="2xx"} 1`) {
		t.Errorf("the request is not counted:\n%s", text)
	}
	refuse = errDraining
	if got := w.must(503, request{method: "GET", path: "/readyz"}); got.code() != "hub_draining" {
		t.Errorf("readyz: %s", got.raw)
	}
}

func TestDraining(t *testing.T) {
	w := newWorld(t)
	w.server.Drain()
	w.must(503, request{method: "GET", path: "/readyz"})
	if got := w.post(503, "/v1/runs", `{"objective":"x"}`); got.code() != "hub_draining" || got.text("retry") != "same_request" {
		t.Errorf("%s", got.raw)
	}
	w.get(200, "/v1/runs")
}
