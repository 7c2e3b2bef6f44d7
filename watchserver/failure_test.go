package watchserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/watchserver"
)

// onEachPath runs test for each transport, and for chunked also without hijacking the connection.
// The context of each request is the result of newContext.
func onEachPath(t *testing.T, newContext func(context.Context) context.Context, configure func(*watchserver.Server),
	test func(f *fixture, c transport.Client),
) {
	wrap := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(newContext(r.Context())))
		})
	}
	for _, path := range append(servertest.TransportNames, "standard") {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				name := path
				f := newFixture(t, func(s *watchserver.Server) {
					if configure != nil {
						configure(s)
					}
					if path == "standard" {
						name, s.Transports = "chunked", []transport.Server{chunked.Server{DisableHijack: true}}
					}
				})
				f.wrap = wrap
				test(f, f.Client(name))
			})
		})
	}
}

func TestTheEndOfTheContextEndsTheWatch(t *testing.T) {
	revoked := &listwatch.Error{Code: listwatch.Unauthorized, Message: "revoked"}
	tests := []struct {
		name    string
		context func(context.Context) context.Context
		status  int
		message string
	}{
		{"deadline", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			context.AfterFunc(ctx, cancel)
			return ctx
		}, http.StatusGatewayTimeout, "deadline"},
		{"cancel", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(10*time.Second, cancel)
			return ctx
		}, http.StatusServiceUnavailable, "canceled"},
		{"cause", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(10*time.Second, func() { cancel(revoked) })
			return ctx
		}, http.StatusUnauthorized, "revoked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			onEachPath(t, tt.context, nil, func(f *fixture, c transport.Client) {
				start := time.Now()
				w := f.watch(c, "allowWatchBookmarks=true")
				w.want("BOOKMARK")
				at := f.put("a", nil).Version()
				w.want("ADDED a")
				if v := w.want("BOOKMARK"); v[0] != at {
					f.Errorf("got a bookmark at %d, want %d", v[0], at)
				}
				received, err := w.Receive()
				if err == nil {
					_, err = received.Event()
				}
				e := testkit.WantStatus(f, tt.message, err, tt.status)
				if !strings.Contains(e.Message, tt.message) {
					f.Fatalf("got %v, want %q", err, tt.message)
				}
				w.wantEnd()
				if took := time.Since(start); took != 10*time.Second {
					f.Errorf("the watch ended after %v, want 10s", took)
				}
			})
		})
	}
}

func TestAContextThatEndsInterruptsAWrite(t *testing.T) {
	var reason chan error
	trace := func(s *watchserver.Server) {
		reason = make(chan error, 1)
		s.Trace = &watchserver.Trace{Closed: func(_ context.Context, _ watchserver.Watch, _ watchserver.EndReason,
			err error,
		) {
			reason <- err
		}}
	}
	deadline := func(ctx context.Context) context.Context {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		context.AfterFunc(ctx, cancel)
		return ctx
	}
	onEachPath(t, deadline, trace, func(f *fixture, c transport.Client) {
		start := time.Now()
		f.watch(c, "") // does not read
		f.fill()
		err := <-reason
		if took := time.Since(start); took < 5*time.Second || took > 6*time.Second ||
			!errors.Is(err, context.DeadlineExceeded) {
			f.Errorf("the watch ended after %v with %v, want the deadline after 5s to 6s", took, err)
		}
	})
}

func TestADisconnectIsNotReportedAsAnError(t *testing.T) {
	var reason chan error
	trace := func(s *watchserver.Server) {
		reason = make(chan error, 1)
		s.Trace = &watchserver.Trace{Closed: func(_ context.Context, _ watchserver.Watch, _ watchserver.EndReason,
			err error,
		) {
			reason <- err
		}}
	}
	onEachPath(t, func(ctx context.Context) context.Context { return ctx }, trace,
		func(f *fixture, c transport.Client) {
			w := f.watch(c, "")
			synctest.Wait()
			w.Close()
			if err := <-reason; err == nil || err.Error() != "the client has disconnected" {
				f.Errorf("got %v, want the error of a disconnected client", err)
			}
		})
}

func TestAListReportsTheEndOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watchserver.Server{Source: blockedSource{}}
		for _, query := range []string{"/", "/?watch=1"} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second,
				&listwatch.Error{Code: listwatch.Unauthorized})
			defer cancel()
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", query, nil))
			if w.Code != http.StatusUnauthorized {
				t.Errorf("GET %s: got %d %s, want 401", query, w.Code, w.Body)
			}
		}
	})
}
