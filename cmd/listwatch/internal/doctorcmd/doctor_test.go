package doctorcmd

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/watchserver/echo"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// newHandler returns a server of an empty collection at /things, with the echo handler that doctor
// uses.
func newHandler(t *testing.T) http.Handler {
	t.Helper()
	c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{APIVersion: "v1", Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	server := &watchserver.Server{Source: c}
	mux := http.NewServeMux()
	mux.Handle("/things", server)
	mux.Handle(echo.Path, &echo.Handler{Server: server})
	return mux
}

// execute runs doctor as the program does.
func execute(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := New()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true // as in the root command
	var o, e bytes.Buffer
	code = cli.Execute(t.Context(), cmd, args, nil, &o, &e)
	return code, o.String(), e.String()
}

// runDoctor examines the collection of h, and returns the findings by check.
func runDoctor(t *testing.T, h http.Handler, flags ...string) (map[string]finding, int) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	defer server.CloseClientConnections()
	return examine(t, append([]string{server.URL + "/things"}, flags...)...)
}

func examine(t *testing.T, args ...string) (map[string]finding, int) {
	t.Helper()
	code, out, errs := execute(t, append(args, "-o", "json")...)
	var report struct{ Findings []finding }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	found := map[string]finding{}
	for _, f := range report.Findings {
		found[f.Check] = f
	}
	return found, code
}

func TestNoProxyHasNoProblem(t *testing.T) {
	found, code := runDoctor(t, newHandler(t), "--idle=300ms")
	for name, f := range found {
		if f.Verdict != fine {
			t.Errorf("%s: %s %s", name, f.Verdict, f.Text)
		}
	}
	if code != cli.ExitOK || len(found) != 14 {
		t.Errorf("exit code %d, %d checks, want 0 and 14: %v", code, len(found), found)
	}
}

// A heldWriter holds a response back until the handler returns.
type heldWriter struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (w *heldWriter) WriteHeader(int)             {}
func (w *heldWriter) Write(p []byte) (int, error) { return w.body.Write(p) }
func (w *heldWriter) Flush()                      {}

func buffer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := &heldWriter{ResponseWriter: w}
		next.ServeHTTP(held, r)
		w.Write(held.body.Bytes())
	})
}

// A gzipWriter compresses each write of a response.
type gzipWriter struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (w gzipWriter) Write(p []byte) (int, error) {
	n, err := w.z.Write(p)
	if err == nil {
		err = w.z.Flush()
	}
	return n, err
}

func (w gzipWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

func compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != echo.Path || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		next.ServeHTTP(gzipWriter{w, z}, r)
		_ = z.Close()
	})
}

func removeUpgrade(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
		next.ServeHTTP(w, r)
	})
}

func refuseAbove(headerBytes, queryBytes int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.Header.Get("X-Listwatch-Doctor")) > headerBytes || len(r.URL.RawQuery) > queryBytes {
				http.Error(w, "too large", http.StatusRequestHeaderFieldsTooLarge)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func shiftClock(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != echo.Path || r.URL.RawQuery != "" || r.Header.Get("Upgrade") != "" {
			next.ServeHTTP(w, r)
			return
		}
		apihttp.WriteJSON(w, r, http.StatusOK, &echo.Report{Protocol: r.Proto, Time: time.Now().Add(-time.Hour)})
	})
}

// changeHost sends the address of the server as the Host, as nginx does by default.
func changeHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "127.0.0.1:8080"
		next.ServeHTTP(w, r)
	})
}

// speakHTTP2 responds like a proxy that speaks HTTP/2 to the server. Upgrades fail with the given
// status.
func speakHTTP2(status int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == echo.Path {
				r.Proto = "HTTP/2.0"
			}
			if r.Header.Get("Upgrade") != "" && (r.URL.Path == echo.Path || status != http.StatusNotImplemented) {
				http.Error(w, "no upgrade", status)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestWebSocketOverHTTP2IsNoProblem(t *testing.T) {
	t.Parallel()
	found, code := runDoctor(t, speakHTTP2(http.StatusNotImplemented)(newHandler(t)), "--idle=0")
	if f := found["upgrade"]; code != cli.ExitOK || f.Verdict != note {
		t.Errorf("exit code %d: %q %s, want 0 and a note", code, f.Verdict, f.Text)
	}
	if f := found["websocket"]; f.Verdict != fine {
		t.Errorf("websocket: %q %s, want that it is fine", f.Verdict, f.Text)
	}
}

// endEarly ends watches after a second, unless they request initial events.
func endEarly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("watch") != "" && q.Get("sendInitialEvents") == "" {
			q.Set("timeoutSeconds", "1")
			r.URL.RawQuery = q.Encode()
		}
		next.ServeHTTP(w, r)
	})
}

func TestDoctorFindsEachFault(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  func(http.Handler) http.Handler
		checks []string // the checks that find the fault
		remedy string   // part of the advice for nginx
	}{
		{"buffering", buffer, []string{"buffering", (*chunked.Client)(nil).Name()}, "proxy_buffering off"},
		{"compression", compress, []string{"compression"}, "gzip off"},
		{"upgrade", removeUpgrade, []string{"upgrade", "websocket"}, "proxy_set_header Upgrade"},
		{"headers", refuseAbove(8<<10, 1<<20), []string{"headers"}, "large_client_header_buffers"},
		{"query", refuseAbove(1<<20, 4<<10), []string{"query"}, "large_client_header_buffers"},
		{"host", changeHost, []string{"host"}, "proxy_set_header Host $http_host;"},
		{"HTTP/2", speakHTTP2(http.StatusBadGateway), []string{"upgrade", "websocket"}, "proxy_http_version 1.1"},
		{"clock", shiftClock, []string{"clock"}, ""},
		{"idle", endEarly, []string{"idle chunked", "idle websocket"}, "proxy_read_timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			idle := "--idle=0"
			if c.name == "idle" {
				idle = "--idle=30s"
			}
			problems := c.checks
			if c.name == "buffering" { // buffered WebSockets fail, too
				problems = append(problems, "websocket")
			}
			found, code := runDoctor(t, c.fault(newHandler(t)), idle)
			if code != cli.ExitFailure {
				t.Errorf("exit code %d, want 1", code)
			}
			for _, check := range c.checks {
				f := found[check]
				if f.Verdict != problem {
					t.Errorf("%s: %q %s, want a problem", check, f.Verdict, f.Text)
				} else if c.remedy != "" &&
					(len(f.Remedies) != len(proxies) || !strings.Contains(f.Remedies[0].Settings, c.remedy)) {
					t.Errorf("%s: remedies %v, want %q", check, f.Remedies, c.remedy)
				}
				delete(found, check)
			}
			for name, f := range found {
				if f.Verdict == problem && !slices.Contains(problems, name) {
					t.Errorf("%s: %s %s", name, f.Verdict, f.Text)
				}
			}
		})
	}
}

func TestDoctorNotesRemovedIncremental(t *testing.T) {
	t.Parallel()
	handler := newHandler(t)
	found, code := runDoctor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Incremental"] = nil
		handler.ServeHTTP(w, r)
	}), "--idle=0")
	if f := found["buffering"]; code != cli.ExitOK || f.Verdict != note ||
		!strings.Contains(f.Text, "removes the header Incremental") {
		t.Errorf("exit code %d: %q %s, want 0 and a note", code, f.Verdict, f.Text)
	}
}

// A kube-apiserver sends no bookmarks for events, and old ones if its etcd reports no progress.
func TestDoctorNotesMissingBookmarks(t *testing.T) {
	t.Parallel()
	handler := newHandler(t)
	for _, tt := range []struct {
		what, text string
		change     func(q url.Values)
	}{
		{"no bookmark", "ended without a bookmark", func(q url.Values) { q.Del("allowWatchBookmarks") }},
		{"old bookmark", "its bookmark is at version", func(url.Values) {}},
	} {
		found, code := runDoctor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); q.Get("timeoutSeconds") == "3" {
				tt.change(q)
				r.URL.RawQuery = q.Encode()
			}
			if q := r.URL.Query(); q.Get("limit") == "1" && q.Get("resourceVersion") == "" &&
				tt.what == "old bookmark" {
				io.WriteString(w,
					`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9946684800000009"},"items":[]}`)
				return
			}
			handler.ServeHTTP(w, r)
		}), "--idle=0")
		if f := found["bookmarks"]; code != cli.ExitOK || f.Verdict != note || !strings.Contains(f.Text, tt.text) {
			t.Errorf("%s: exit code %d: %q %s, want 0 and a note", tt.what, code, f.Verdict, f.Text)
		}
	}
}

// noBookmarks is a source whose watches report no progress.
type noBookmarks struct{ listwatch.Source }

func (s noBookmarks) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	return noProgress{w}, err
}

type noProgress struct{ listwatch.Watcher }

func (w noProgress) Next(ctx context.Context, events []listwatch.Event) (int, error) {
	for {
		n, err := w.Watcher.Next(ctx, events)
		kept := slices.DeleteFunc(events[:n], func(e listwatch.Event) bool { return e.Type == listwatch.Bookmark })
		if len(kept) > 0 || err != nil {
			return len(kept), err
		}
	}
}

func TestDoctorNotesARelayThatCannotProbe(t *testing.T) {
	t.Parallel()
	db := memory.Open(memory.Options{})
	things, err := db.Collection(store.CollectionSpec{APIVersion: "v1", Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	others, err := db.Collection(store.CollectionSpec{APIVersion: "v1", Kind: "Other"})
	if err != nil {
		t.Fatal(err)
	}
	upstream := noBookmarks{things}
	r := relay.Open(upstream, relay.Options{ProbeSource: upstream})
	defer r.Close()
	if _, err := r.List(t.Context(), listwatch.Query{}); err != nil { // waits for the state
		t.Fatal(err)
	}
	// The relay receives no event for this write.
	if _, err := others.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`)); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/things", &watchserver.Server{Source: r})
	found, code := runDoctor(t, mux, "--idle=0")
	if f := found["bookmarks"]; code != cli.ExitOK || f.Verdict != note {
		t.Errorf("exit code %d: %q %s, want 0 and a note", code, f.Verdict, f.Text)
	}
}

// A short stall delays the parts of one response, as a buffering proxy does, but does not delay the
// parts of the next response.
func TestStallIsNotReportedAsBuffering(t *testing.T) {
	t.Parallel()
	handler := newHandler(t)
	held := buffer(handler)
	var streams atomic.Int32
	found, code := runDoctor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("ticks") == "6" && streams.Add(1) == 1 {
			held.ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}), "--idle=0")
	if f := found["buffering"]; code != cli.ExitOK || f.Verdict != fine || streams.Load() < 2 {
		t.Errorf("exit code %d after %d measurements: %q %s, want 0 after at least 2", code, streams.Load(), f.Verdict,
			f.Text)
	}
}

func TestServerWithoutEchoIsExamined(t *testing.T) {
	handler := newHandler(t)
	found, code := runDoctor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == echo.Path {
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}), "--idle=0")
	if code != cli.ExitOK || found["path"].Verdict != unknown || found["chunked"].Verdict != fine {
		t.Errorf("exit code %d: %v", code, found)
	}
}

func TestDoctorExplainsCertificates(t *testing.T) {
	server := httptest.NewTLSServer(newHandler(t))
	defer server.Close()
	found, code := examine(t, server.URL+"/things")
	if f := found["certificate"]; code != cli.ExitFailure || f.Verdict != problem ||
		!strings.Contains(f.Text, "--ca") || len(found) != 1 {
		t.Errorf("exit code %d: %v", code, found)
	}
}

func TestDoctorRefusesBadArguments(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"a", "b"},
		{"ftp://example.com"},
		{"http://x/things", "-o", "xml"},
		{"http://x/things", "--echo", "://"},
	} {
		if code, _, errs := execute(t, args...); code != cli.ExitUsage {
			t.Errorf("%q: exit code %d, want %d: %s", args, code, cli.ExitUsage, errs)
		}
	}
}
