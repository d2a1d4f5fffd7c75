package metrics

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxValues bounds the values of one label; what comes later counts as "other".
const maxValues = 256

// Metrics holds the hub's counters. Its methods are safe for concurrent use
// and never block on I/O.
type Metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec
	latency     *prometheus.HistogramVec
	mutations   *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	late        prometheus.Counter
	waits       prometheus.Gauge
	connections prometheus.Gauge
	groupSize   prometheus.Histogram
	groupTime   prometheus.Histogram
	routes      values
	operations  values
	reasons     values
}

// New makes a Metrics with an empty registry, beside what the Go runtime and
// the process say of themselves.
func New() *Metrics {
	m := &Metrics{
		registry:    prometheus.NewRegistry(),
		requests:    counters("requests_total", "Requests by route pattern and status class.", "route", "status"),
		latency:     latencies(),
		mutations:   counters("mutations_total", "Mutations by operation and result (ok, refused, failed).", "operation", "result"),
		refusals:    counters("connections_refused_total", "Connections closed before a request, by reason.", "reason"),
		late:        prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "relay_late_total", Help: "Imported messages that came too late for their recipient, kept as history or not."}),
		waits:       gauge("waits_in_flight", "Calls that wait for mail, answers, verdicts, starts and stops."),
		connections: gauge("connections_open", "Accepted connections that are open, those that wait not counted."),
		groupSize:   histogram("writer_group_size", "Transactions committed together.", prometheus.ExponentialBuckets(1, 2, 10)),
		groupTime:   histogram("writer_group_seconds", "Time of one commit with all its transactions.", prometheus.ExponentialBuckets(0.0005, 2, 14)),
	}
	m.registry.MustRegister(m.requests, m.latency, m.mutations, m.refusals, m.late, m.waits, m.connections, m.groupSize, m.groupTime,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

const namespace = "wavehub"

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func latencies() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "request_seconds", Help: "Time from the request's header to the end of its handler.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
	}, []string{"route"})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
}

// Handler answers with all metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Request counts one answered request of the route pattern; status is the HTTP
// status, 0 when the client left before there was one.
func (m *Metrics) Request(route string, status int, took time.Duration) {
	route = m.routes.bounded(route)
	m.requests.WithLabelValues(route, class(status)).Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

func class(status int) string {
	if status < 100 || status > 599 {
		return "none"
	}
	return strconv.Itoa(status/100) + "xx"
}

// Results of a mutation.
const (
	ResultOK      = "ok"
	ResultRefused = "refused" // a status below 500
	ResultFailed  = "failed"
)

// Mutation counts one mutation with one of the results.
func (m *Metrics) Mutation(operation, result string) {
	m.mutations.WithLabelValues(m.operations.bounded(operation), result).Inc()
}

// Late counts an imported message that came too late for its recipient.
func (m *Metrics) Late() { m.late.Inc() }

// Refused counts a connection that was closed before any request.
func (m *Metrics) Refused(reason string) {
	m.refusals.WithLabelValues(m.reasons.bounded(reason)).Inc()
}

// Waits sets how many calls wait now.
func (m *Metrics) Waits(n int64) { m.waits.Set(float64(n)) }

// Connections sets how many connections are open now.
func (m *Metrics) Connections(n int64) { m.connections.Set(float64(n)) }

// WriterGroup observes one commit of the store: how many transactions it held
// and how long it took.
func (m *Metrics) WriterGroup(transactions int, took time.Duration) {
	m.groupSize.Observe(float64(transactions))
	m.groupTime.Observe(took.Seconds())
}

// values remembers the values that a label has had. The zero value is ready.
type values struct {
	mu   sync.Mutex
	seen map[string]struct{} // guarded by mu
}

func (v *values) bounded(s string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.seen[s]; ok {
		return s
	}
	if len(v.seen) >= maxValues {
		return "other"
	}
	if v.seen == nil {
		v.seen = map[string]struct{}{}
	}
	v.seen[s] = struct{}{}
	return s
}
