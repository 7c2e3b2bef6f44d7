// Command middleware is a configuration service: settings behind a chi router that logs, measures
// and traces every request, watches included. docs/middleware.md explains it.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/cors"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

// A Setting is an object that the service stores.
type Setting struct {
	listwatch.Metadata `json:"metadata"`
	Value              string `json:"value"`
}

func main() {
	settings := &watchserver.Server{Source: memory.New[Setting]()}
	metrics, logger := prometheus.NewRegistry(), log.Default()
	srv := &http.Server{Addr: "127.0.0.1:8080", Handler: newRouter(settings, metrics, otel.GetTracerProvider(), logger)}
	h2.Configure(srv, h2.Config{})
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	stopped := make(chan struct{})
	context.AfterFunc(stop, func() {
		defer close(stopped)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = settings.Drain(ctx) // Shutdown ignores hijacked connections
		_ = srv.Shutdown(ctx)
	})
	if err := srv.ListenAndServe(); err != http.ErrServerClosed {
		logger.Fatal(err)
	}
	<-stopped // ListenAndServe returns at the start of Shutdown
}

// newRouter serves lists and watches of settings at /settings, and the metrics at /metrics.
func newRouter(settings http.Handler, metrics *prometheus.Registry, tracing trace.TracerProvider,
	logger *log.Logger,
) http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.RequestLogger(&middleware.DefaultLogFormatter{Logger: logger, NoColor: true}))
	r.Use(middleware.Recoverer)
	r.Use(cors.New(cors.Options{
		AllowedOrigins: []string{"https://dashboard.example.com"},
		AllowedHeaders: []string{"Accept", "Authorization", "Content-Type"},
		ExposedHeaders: []string{transport.EpochHeader, "Retry-After", "Warning"},
	}).Handler)
	r.Use(otelhttp.NewMiddleware("settings", otelhttp.WithTracerProvider(tracing)))
	r.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	r.With(measure(metrics)).Handle("/settings", settings)
	return r
}

// measure counts the requests in flight, and records the duration and size of finished requests.
func measure(metrics *prometheus.Registry) func(http.Handler) http.Handler {
	inFlight := prometheus.NewGauge(prometheus.GaugeOpts{Name: "http_in_flight_requests"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "http_request_duration_seconds", Buckets: []float64{0.01, 0.1, 1, 60, 600, 1800, 3600},
	}, []string{"code"})
	bytes := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: "http_response_size_bytes"}, []string{"code"})
	metrics.MustRegister(inFlight, seconds, bytes)
	return func(next http.Handler) http.Handler {
		next = promhttp.InstrumentHandlerResponseSize(bytes, next)
		next = promhttp.InstrumentHandlerDuration(seconds, next)
		return promhttp.InstrumentHandlerInFlight(inFlight, next)
	}
}
