//go:build unix

package conformance_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/transport/h2"
)

//go:embed testdata/page.html
var page []byte

// A pageReport is a report that testdata/page.html posts: the stage that the page has reached
// and the events that it has received.
type pageReport struct {
	Stage                  string
	EventSource, WebSocket []string
}

// A reportServer serves the page at its own origin and collects the page's reports.
type reportServer struct {
	url     string
	server  *httptest.Server
	conns   *resettableListener
	reports chan pageReport
	// seenStages holds the stages that were reported, so that duplicate reports can be ignored: a
	// browser that received no response sends its report again.
	seenStages sync.Map
}

// newReportServer starts a reportServer. If watch is not nil, the server also serves it at /things,
// so that the page and the watches have the same origin.
func newReportServer(t *testing.T, watch http.Handler) *reportServer {
	t.Helper()
	o := &reportServer{reports: make(chan pageReport, 8)}
	mux := newPageMux(t, page, func(got pageReport) {
		if _, again := o.seenStages.LoadOrStore(got.Stage, true); !again {
			o.reports <- got
		}
	})
	if watch != nil {
		mux.Handle("/things", watch)
	}
	o.server = httptest.NewUnstartedServer(mux)
	o.conns = &resettableListener{Listener: o.server.Listener}
	o.server.Listener = o.conns
	h2.Configure(o.server.Config, h2.Config{})
	o.server.Start()
	o.url = o.server.URL
	t.Cleanup(o.server.Close)
	return o
}

// newPageMux serves page, and calls received with each report of type R that the page posts.
func newPageMux[R any](t *testing.T, page []byte, received func(R)) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(page)
	})
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		var got R
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Errorf("invalid report from the page: %v", err)
		}
		received(got)
	})
	return mux
}

// awaitReport returns the next report, which must be of the given stage.
func (r *reportServer) awaitReport(ctx context.Context, t *testing.T, stage string) pageReport {
	t.Helper()
	select {
	case got := <-r.reports:
		if got.Stage != stage {
			t.Fatalf("the page reported stage %q, want %q; it saw %d events over EventSource and %d over WebSocket",
				got.Stage, stage, len(got.EventSource), len(got.WebSocket))
		}
		return got
	case <-ctx.Done():
		t.Fatalf("the page did not report stage %q: %v", stage, ctx.Err())
	}
	return pageReport{}
}

// A resettableListener can reset the connections that it accepted.
type resettableListener struct {
	net.Listener

	mu            sync.Mutex
	acceptedConns []net.Conn // guarded by mu
}

func (r *resettableListener) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acceptedConns = append(r.acceptedConns, conn)
	return conn, nil
}

// reset closes all connections with a TCP reset.
func (r *resettableListener) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.acceptedConns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
	r.acceptedConns = nil
}
