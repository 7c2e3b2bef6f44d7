package watchserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// The server must not wait for the rest of the request body, neither before it responds nor before
// it closes the connection after the watch.
func TestWatchDoesNotWaitForARequestBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.put("a", nil)
		conn, err := f.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "GET /?watch=1&timeoutSeconds=2 HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\nfive!")
		start := time.Now()
		response, err := io.ReadAll(conn)
		if took := time.Since(start); took > 3*time.Second || !bytes.Contains(response, []byte("ADDED")) ||
			!bytes.HasSuffix(response, []byte("\r\n0\r\n\r\n")) {
			t.Errorf("got %q, %v after %v; want the event and a clean end after 2s", response, err, took)
		}
	})
}

func TestDrainDoesNotWaitForABlockedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watchserver.Server{Source: blockedSource{}}
		request := httptest.NewRequest("GET", "/?watch=1", nil)
		ctx, release := context.WithCancel(t.Context())
		go s.ServeHTTP(httptest.NewRecorder(), request.WithContext(ctx))
		synctest.Wait()
		deadline, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Drain(deadline); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second {
			t.Errorf("Drain: %v after %v, want the deadline", err, time.Since(start))
		}
		release()
	})
}

func TestDrainSpreadAppliesToWatchesThatAreOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watchserver.Server{
			Source: slowSource{memory.New[Flag]()},
			Timing: watchserver.Timing{DrainSpread: time.Minute},
		}
		const watches = 600 // so many that the random numbers cannot cause a failure
		ends := make(chan time.Time, watches)
		for range watches {
			go func() {
				s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/?watch=1", nil))
				ends <- time.Now()
			}()
		}
		synctest.Wait()
		start := time.Now()
		if err := s.Drain(t.Context()); err != nil || time.Since(start) > time.Minute {
			t.Errorf("Drain: %v after %v, want nil within a minute", err, time.Since(start))
		}
		early := 0
		for range watches {
			if (<-ends).Sub(start) < 20*time.Second {
				early++
			}
		}
		if early < watches/6 || early > watches*2/3 {
			t.Errorf("%d of %d watches ended in the first third of the minute", early, watches)
		}
	})
}

func TestAPanicOnOpeningReleasesTheWatch(t *testing.T) {
	s := &watchserver.Server{Source: panickingOnWatch{}, Limits: watchserver.Limits{Watches: 1}, Log: discardLog}
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of the source did not reach net/http")
				}
			}()
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/?watch=1", nil))
		}()
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAPanicInNextEndsOneWatch(t *testing.T) {
	onEachTransport(t, func(s *watchserver.Server) { s.Log = discardLog }, func(f *fixture, c transport.Client) {
		f.WatchServer.Source = panickingOnNext{}
		f.watch(c, "").wantError(listwatch.Unknown)
	})
}

func TestALateListFailsWith504(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watchserver.Server{Source: memory.New[Flag]()}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/?resourceVersion=99999999999999999&timeoutSeconds=1", nil))
		var status kubestatus.Status
		err := json.Unmarshal(w.Body.Bytes(), &status)
		if err != nil || w.Code != http.StatusGatewayTimeout || status.Reason != "Timeout" {
			t.Errorf("got %d %s, %v, want 504 Timeout", w.Code, w.Body, err)
		}
	})
}

func TestATimeoutReportsAFutureVersion(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		start := time.Now()
		f.watch(c, "resourceVersion=99999999999999999&timeoutSeconds=2").wantError(listwatch.NotYet)
		if took := time.Since(start); took != 2*time.Second {
			f.Errorf("got the error after %v, want 2s", took)
		}
	})
}

// A timedOutSource is a source whose own deadline has passed.
type timedOutSource struct{ listwatch.Source }

func (timedOutSource) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{},
		&listwatch.Error{Code: listwatch.NotYet, Message: "the database is lost", Err: context.DeadlineExceeded}
}

func TestListKeepsTheErrorOfTheSource(t *testing.T) {
	s := &watchserver.Server{Source: timedOutSource{}}
	for _, query := range []string{"", "?timeoutSeconds=100"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/"+query, nil))
		if w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), "the database is lost") {
			t.Errorf("GET /%s: %d %s, want 504 and the message of the source", query, w.Code, w.Body)
		}
	}
}

func TestListHasAWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		for i := range 30 {
			if _, err := f.flags.Create(t.Context(), Flag{Metadata: listwatch.Metadata{
				Name: fmt.Sprint(i), Annotations: map[string]string{"much": strings.Repeat("x", 100<<10)},
			}}); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			conn, err := f.Dial(t.Context(), "", "")
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			time.Sleep(2 * transport.DefaultWriteTimeout)
			response, _ := io.ReadAll(conn)
			if len(response) >= 30*100<<10 {
				t.Errorf("a client that did not read got all %d bytes of the list", len(response))
			}
		}()
		<-ended
	})
}

func TestStalledWatchBuffersFewLargeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(largeEvents)
		s := servertest.Start(t, source, servertest.Options{})
		w, err := s.Client("chunked").Dial(t.Context(), &transport.Request{URL: s.WatchURL("/", "resourceVersion=1")})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := source.read.Load(); n > 8 {
			t.Errorf("the server read %d events of 1 MiB for a client that reads nothing, want at most 8", n)
		}
		w.Close()
	})
}

// A blockedSource is a source whose methods block until the context ends.
type blockedSource struct{}

func (blockedSource) List(ctx context.Context, _ listwatch.Query) (listwatch.Page, error) {
	<-ctx.Done()
	return listwatch.Page{}, ctx.Err()
}

func (blockedSource) Watch(ctx context.Context, _ listwatch.Query) (listwatch.Watcher, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// panickingOnWatch is a source whose method Watch panics.
type panickingOnWatch struct{ blockedSource }

func (panickingOnWatch) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	panic("on purpose")
}

// panickingOnNext is a source whose watchers are not Pollers and panic in Next.
type panickingOnNext struct{ blockedSource }

func (panickingOnNext) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	return panickingWatcher{}, nil
}

type panickingWatcher struct{}

func (panickingWatcher) Next(context.Context, []listwatch.Event) (int, error) { panic("on purpose") }
func (panickingWatcher) Close() error                                         { return nil }
