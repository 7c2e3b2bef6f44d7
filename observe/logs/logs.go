// Package logs logs the work of a watch server to a [slog.Logger]: a line at the end of each
// watch, the failures of the server, and an audit log of all writes.
package logs

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// DefaultPerSecond is the number of lines that [Watches] writes per second if perSecond is zero.
const DefaultPerSecond = 20

// Watches returns hooks that log a line when a watch ends. The line contains the client, the path,
// the duration, the numbers of events and bytes, and the reason for the end. The hooks write at
// most perSecond lines in a second, so that an attacker cannot fill the disk; the next line
// contains the number of omitted lines. If perSecond is zero, DefaultPerSecond is used. A negative
// value means no limit.
func Watches(log *slog.Logger, perSecond int) *watchserver.Trace {
	l := limiter{max: cmp.Or(perSecond, DefaultPerSecond)}
	return &watchserver.Trace{Closed: func(ctx context.Context, w watchserver.Watch, reason watchserver.EndReason,
		err error,
	) {
		allowed, omitted := l.allow(time.Now())
		if !allowed {
			return
		}
		attrs := append(requestAttrs(w.Request),
			slog.Uint64("id", w.ID), slog.String("transport", w.Transport), slog.String("framing", w.MediaType),
			slog.Duration("took", time.Since(w.Opened).Round(time.Millisecond)), slog.Int64("events", w.Events),
			slog.Int64("bytes", w.Bytes),
			slog.String("reason", string(reason)))
		if err != nil {
			attrs = append(attrs, slog.String("error", err.Error()))
		}
		if omitted > 0 {
			attrs = append(attrs, slog.Int("omitted", omitted))
		}
		log.LogAttrs(ctx, slog.LevelInfo, "watch ended", attrs...)
	}}
}

// failuresPerSecond is the maximum number of lines that [Failures] writes per second.
const failuresPerSecond = 2

// Failures returns hooks that log the requests that fail through no fault of their client. These
// are requests refused with a status of 500 or above, for example because the memory or the disk of
// the store is full, and requests whose error has a cause that the client does not receive. The
// hooks write at most two lines in a second; the next line contains the number of omitted lines.
func Failures(log *slog.Logger) *watchserver.Trace {
	l := limiter{max: failuresPerSecond}
	return &watchserver.Trace{Refused: func(ctx context.Context, r watchserver.Request, err error) {
		status := kubestatus.Of(err).Code
		if status < http.StatusInternalServerError && listwatch.AsError(err).Err == nil {
			return
		}
		allowed, omitted := l.allow(time.Now())
		if !allowed {
			return
		}
		attrs := append(requestAttrs(r), slog.String("method", r.Method), slog.Int("status", status),
			slog.String("error", err.Error()))
		if omitted > 0 {
			attrs = append(attrs, slog.Int("omitted", omitted))
		}
		log.LogAttrs(ctx, slog.LevelWarn, "request failed", attrs...)
	}}
}

// Audit returns hooks that log each write and its result: the version of a write that succeeded, or
// the status and the error of a write that was refused. No line is omitted. The content of objects
// is not logged.
func Audit(log *slog.Logger) *watchserver.Trace {
	return &watchserver.Trace{
		Changed: func(ctx context.Context, c watchserver.Change) {
			attrs := append(requestAttrs(c.Request),
				slog.String("verb", c.Verb), slog.String("namespace", c.Key.Namespace), slog.String("name", c.Key.Name),
				slog.Uint64("resourceVersion", uint64(c.Version)), slog.Bool("dryRun", c.DryRun),
				// JSON would show a Duration as a number of nanoseconds.
				slog.Float64("tookSeconds", c.Took.Seconds()))
			log.LogAttrs(ctx, slog.LevelInfo, "write", attrs...)
		},
		Refused: func(ctx context.Context, r watchserver.Request, err error) {
			switch r.Method {
			case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodConnect, transport.MethodQuery:
				return
			}
			attrs := append(requestAttrs(r), slog.String("method", r.Method),
				slog.Int("status", kubestatus.Of(err).Code), slog.String("error", err.Error()))
			log.LogAttrs(ctx, slog.LevelWarn, "write refused", attrs...)
		},
	}
}

// Expired returns a hook for the Trace of a store that logs each object deleted at the end of its
// TTL. Such a delete is no request, so [Audit] does not log it. An etcd has no such hook.
func Expired(log *slog.Logger) func(collection string, o *listwatch.Object) {
	return func(collection string, o *listwatch.Object) {
		log.LogAttrs(context.Background(), slog.LevelInfo, "expired",
			slog.String("resource", collection), slog.String("namespace", o.Key.Namespace),
			slog.String("name", o.Key.Name), slog.Uint64("resourceVersion", uint64(o.Version)))
	}
}

// requestAttrs returns attributes with the sender, the resource and the path of r.
func requestAttrs(r watchserver.Request) []slog.Attr {
	return []slog.Attr{
		slog.String("client", r.Client), slog.String("user", r.User), slog.String("from", r.RemoteAddr),
		slog.String("resource", r.Resource.Name), slog.String("path", r.Path),
	}
}

// A limiter counts the lines of each second.
type limiter struct {
	max int // unlimited if negative

	mu sync.Mutex
	// Guarded by mu.
	second  int64
	written int // in this second
	omitted int // since the last line
}

// allow reports whether a line may be written, and the number of lines left out before it.
func (l *limiter) allow(now time.Time) (allowed bool, omitted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := now.Unix(); s != l.second {
		l.second, l.written = s, 0
	}
	if l.max >= 0 && l.written >= l.max {
		l.omitted++
		return false, 0
	}
	l.written++
	omitted, l.omitted = l.omitted, 0
	return true, omitted
}
