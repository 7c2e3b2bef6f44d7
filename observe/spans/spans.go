// Package spans reports lists, watches and writes to OpenTelemetry, and carries the W3C trace
// context between clients and servers.
//
//	server.Trace = spans.Trace(provider)
//	http.Handle("/flags", spans.Handler(server))
//
// A watch may last for hours, and a span is exported when it ends. So a watch has two spans, which
// are linked: "watch open" when it has been accepted, and "watch" when it has ended.
//
// The package is in the same module as the metrics, because the API of OpenTelemetry adds only four
// small modules, and a program that does not import the package does not build them.
package spans

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/watchserver"
)

// w3c is the format of the trace context (https://www.w3.org/TR/trace-context/).
var w3c propagation.TraceContext

// Handler returns a handler that reads the trace context from the headers of each request, so that
// the spans of [Trace] belong to the trace of the client. Handlers of another library, such as
// otelhttp, do the same.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header))))
	})
}

// Header returns a function for client.Remote.Header that adds the trace context of the call to the
// headers that next returns. If next is nil, it returns no other headers. The requests of a watch
// belong to the trace of the call that has opened it.
func Header(next func(ctx context.Context,
	refresh bool) (http.Header, error),
) func(ctx context.Context, refresh bool) (http.Header, error) {
	return func(ctx context.Context, refresh bool) (http.Header, error) {
		header := http.Header{}
		if next != nil {
			h, err := next(ctx, refresh)
			if err != nil {
				return nil, err
			}
			maps.Copy(header, h)
		}
		w3c.Inject(ctx, propagation.HeaderCarrier(header))
		return header, nil
	}
}

// Trace returns hooks that report spans to p. Each Server needs a Trace of its own.
func Trace(p trace.TracerProvider) *watchserver.Trace {
	t := &tracer{Tracer: p.Tracer("github.com/listwatch/listwatch/observe/spans")}
	return &watchserver.Trace{
		Refused: func(ctx context.Context, r watchserver.Request, err error) {
			span := t.start(ctx, "refuse", r, time.Now(),
				attribute.Int("http.response.status_code", kubestatus.Of(err).Code))
			end(span, err)
		},
		Listed: func(ctx context.Context, l watchserver.List) {
			end(t.start(ctx, "list", l.Request, time.Now().Add(-l.Took),
				attribute.Int("listwatch.objects", l.Items), attribute.Int64("listwatch.bytes", l.Bytes)), nil)
		},
		Changed: func(ctx context.Context, c watchserver.Change) {
			end(t.start(ctx, c.Verb, c.Request, time.Now().Add(-c.Took), attribute.Bool("listwatch.dry_run", c.DryRun)),
				nil)
		},
		Opened: func(ctx context.Context, w watchserver.Watch) {
			span := t.start(ctx, "watch open", w.Request, w.Opened, watchAttrs(w)...)
			t.opened.Store(w.ID, span.SpanContext())
			end(span, nil)
		},
		Closed: func(ctx context.Context, w watchserver.Watch, reason watchserver.EndReason, err error) {
			span := t.start(ctx, "watch", w.Request, w.Opened, append(watchAttrs(w),
				attribute.Int64("listwatch.events", w.Events), attribute.Int64("listwatch.bytes", w.Bytes),
				attribute.String("listwatch.reason", string(reason)))...)
			if opened, ok := t.opened.LoadAndDelete(w.ID); ok {
				span.AddLink(trace.Link{SpanContext: opened.(trace.SpanContext)})
			}
			if reason != watchserver.EndFailed {
				// The client or the operator has ended the watch, so the span has no error.
				err = nil
			}
			end(span, err)
		},
	}
}

// A tracer makes the spans of one Server.
type tracer struct {
	trace.Tracer
	opened sync.Map // the ID of an open watch → the trace.SpanContext of "watch open"
}

func (t *tracer) start(ctx context.Context, name string, r watchserver.Request, at time.Time,
	attrs ...attribute.KeyValue,
) trace.Span {
	attrs = append(attrs,
		attribute.String("http.request.method", r.Method), attribute.String("url.path", r.Path),
		attribute.String("listwatch.group", r.Resource.Group),
		attribute.String("listwatch.version", r.Resource.Version),
		attribute.String("listwatch.resource", r.Resource.Name))
	_, span := t.Start(ctx, name, trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attrs...))
	return span
}

func watchAttrs(w watchserver.Watch) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("listwatch.transport", w.Transport), attribute.String("listwatch.framing", w.MediaType),
	}
}

func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
