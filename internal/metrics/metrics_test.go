package metrics

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func page(t *testing.T, m *Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("status %d", rec.Code)
	}
	return rec.Body.String()
}

func TestEverySeriesIsShown(t *testing.T) {
	m := New()
	m.Request("GET /v1/runs/{run}", 404, time.Millisecond)
	m.Request("GET /v1/runs/{run}", 0, time.Millisecond)
	m.Mutation("createRun", ResultOK)
	m.Refused("handshake")
	m.Waits(3)
	m.Connections(7)
	m.WriterGroup(8, time.Millisecond)
	text := page(t, m)
	for _, want := range []string{
		`wavehub_requests_total{route="GET /v1/runs/{run}",status="4xx"} 1`,
		`wavehub_requests_total{route="GET /v1/runs/{run}",status="none"} 1`,
		`wavehub_mutations_total{operation="createRun",result="ok"} 1`,
		`wavehub_connections_refused_total{reason="handshake"} 1`,
		"wavehub_waits_in_flight 3",
		"wavehub_connections_open 7",
		"wavehub_writer_group_size_sum 8",
		"go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestLabelsAreBounded(t *testing.T) {
	m := New()
	for i := range 2 * maxValues {
		m.Request(fmt.Sprintf("route-%d", i), 200, 0)
	}
	text := page(t, m)
	if n := strings.Count(text, "wavehub_requests_total{"); n != maxValues+1 {
		t.Errorf("%d series, want %d", n, maxValues+1)
	}
	if want := fmt.Sprintf(`wavehub_requests_total{route="other",status="2xx"} %d`, maxValues); !strings.Contains(text, want) {
		t.Errorf("%q is missing", want)
	}
}
