package spans_test

import (
	"context"
	"crypto/tls"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/observe/spans"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/watchserver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type note struct {
	listwatch.Metadata `json:"metadata"`
}

func TestSpansBelongToTheTraceOfTheClient(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	notes := memory.New[note]()
	if _, err := notes.Create(t.Context(), note{listwatch.Metadata{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	server := &watchserver.Server{Source: notes, Trace: spans.Trace(provider)}
	listener := httptest.NewServer(spans.Handler(server))
	defer listener.Close()
	remote := &client.Remote{URL: listener.URL, Header: spans.Header(nil)}
	defer remote.Close()

	ctx, parent := provider.Tracer("test").Start(t.Context(), "parent")
	if _, err := remote.List(ctx, listwatch.Query{}); err != nil {
		t.Fatal(err)
	}
	w, err := remote.Watch(ctx, listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Next(ctx, make([]listwatch.Event, 1)); n != 1 || err != nil {
		t.Fatalf("got %d events, %v, want one", n, err)
	}
	w.Close()
	parent.End()
	if err := server.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	ended := make(map[string]sdktrace.ReadOnlySpan)
	for _, span := range recorder.Ended() {
		ended[span.Name()] = span
		if got, want := span.SpanContext().TraceID(), parent.SpanContext().TraceID(); got != want {
			t.Errorf("%s: got trace %v, want the trace of the client, %v", span.Name(), got, want)
		}
	}
	for _, name := range []string{"list", "watch open", "watch"} {
		span := ended[name]
		if span == nil {
			t.Errorf("no span %q", name)
			continue
		}
		if span.Parent().SpanID() != parent.SpanContext().SpanID() || span.EndTime().Before(span.StartTime()) {
			t.Errorf("%s: got parent %v from %v to %v, want the span of the client", name, span.Parent().SpanID(),
				span.StartTime(), span.EndTime())
		}
	}
	if links := ended["watch"].Links(); len(links) != 1 ||
		links[0].SpanContext.SpanID() != ended["watch open"].SpanContext().SpanID() {
		t.Errorf("got links %v, want one to the opening of the watch", links)
	}
}

func TestTraceContextTravelsOverEveryTransport(t *testing.T) {
	network := transport.Network{TLS: &tls.Config{InsecureSkipVerify: true}}
	for _, c := range []transport.Client{
		&chunked.Client{Network: network}, &h2.Client{Network: network},
		&websocket.Client{Network: network},
	} {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		notes := memory.New[note]()
		handler := &crudserver.Handler{
			Path: "/notes", Collection: store.CollectionOf(notes),
			Server: &watchserver.Server{Trace: spans.Trace(provider)},
		}
		listener := httptest.NewUnstartedServer(spans.Handler(handler))
		listener.EnableHTTP2 = true
		listener.StartTLS()
		remote := &client.Remote{
			URL: listener.URL + "/notes", Network: network, Transports: []transport.Client{c},
			Header: spans.Header(nil),
		}

		ctx, parent := provider.Tracer("test").Start(t.Context(), "parent")
		if _, err := (typed.Collection[note]{Store: remote}).Create(ctx,
			note{listwatch.Metadata{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		w, err := remote.Watch(ctx, listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := w.Next(ctx, make([]listwatch.Event, 1)); n != 1 || err != nil {
			t.Fatalf("%T: got %d events, %v, want one", c, n, err)
		}
		w.Close()
		parent.End()
		if err := handler.Server.Drain(context.Background()); err != nil {
			t.Fatal(err)
		}
		remote.Close()
		listener.Close()
		var names []string
		for _, span := range recorder.Ended() {
			names = append(names, span.Name())
			if got, want := span.SpanContext().TraceID(), parent.SpanContext().TraceID(); got != want {
				t.Errorf("%T, %s: got trace %v, want the trace of the client, %v", c, span.Name(), got, want)
			}
		}
		for _, want := range []string{"create", "watch open", "watch"} {
			if !slices.Contains(names, want) {
				t.Errorf("%T: got the spans %q, want %q among them", c, names, want)
			}
		}
	}
}

func TestWritesAndRefusalsAreSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	hooks := spans.Trace(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	hooks.Changed(t.Context(), watchserver.Change{Verb: "update", Took: time.Second})
	hooks.Refused(t.Context(), watchserver.Request{Method: "PUT", Path: "/x"},
		&listwatch.Error{Code: listwatch.Forbidden})
	ended := recorder.Ended()
	if len(ended) != 2 || ended[0].Name() != "update" || ended[0].EndTime().Sub(ended[0].StartTime()) < time.Second {
		t.Errorf("got %v, want a span of a second for the write", ended)
	}
	for _, a := range ended[1].Attributes() {
		if a.Key == "url.path" && a.Value.AsString() != "/x" {
			t.Errorf("got url.path %s, want /x", a.Value.AsString())
		}
	}
	if ended[1].Status().Description != "forbidden" {
		t.Errorf("got status %v, want the error", ended[1].Status())
	}
}
