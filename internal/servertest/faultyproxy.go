package servertest

import (
	"bytes"
	"net/http"
	"sync/atomic"
)

// A FaultyProxy is a proxy in front of a server that changes the watches of the JSON framing, and
// refuses WebSocket. Its Wrap is for [Options.Wrap]. The faults may be changed at any time.
type FaultyProxy struct {
	// Refuses makes the proxy respond 503 to each request.
	Refuses atomic.Bool
	// HidesExpiry makes a watch end cleanly where the server reports 410.
	HidesExpiry atomic.Bool
	// DropsBookmarks drops the bookmarks of watches, also the end of the initial events.
	DropsBookmarks atomic.Bool
	// Lists and Watches count the requests that reached the server.
	Lists, Watches atomic.Int64
}

// Wrap returns a handler that forwards requests to next.
func (f *FaultyProxy) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case f.Refuses.Load():
			http.Error(w, "the proxy has no server", http.StatusServiceUnavailable)
		case r.Header.Get("Upgrade") != "":
			http.Error(w, "the proxy has no WebSocket", http.StatusNotImplemented)
		case r.URL.Query().Get("watch") == "":
			f.Lists.Add(1)
			next.ServeHTTP(w, r)
		default:
			f.Watches.Add(1)
			next.ServeHTTP(&faultyWriter{ResponseWriter: w, faults: f}, r)
		}
	})
}

// A faultyWriter forwards the lines of a watch, except for the lines that the faults drop.
type faultyWriter struct {
	http.ResponseWriter
	faults *FaultyProxy
	line   []byte // the beginning of a line that is not complete
	ended  bool   // nothing more is forwarded
}

// Write implements [http.ResponseWriter].
func (f *faultyWriter) Write(p []byte) (int, error) {
	f.line = append(f.line, p...)
	for {
		line, rest, ok := bytes.Cut(f.line, []byte("\n"))
		if !ok || f.ended {
			return len(p), nil
		}
		isExpiry := bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)) && bytes.Contains(line, []byte(`"code":410`))
		isBookmark := bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`))
		switch {
		case isExpiry && f.faults.HidesExpiry.Load():
			f.ended = true
		case isBookmark && f.faults.DropsBookmarks.Load():
		default:
			if _, err := f.ResponseWriter.Write(append(bytes.Clone(line), '\n')); err != nil {
				return 0, err
			}
		}
		f.line = rest
	}
}

// Flush implements [http.Flusher].
func (f *faultyWriter) Flush() { _ = http.NewResponseController(f.ResponseWriter).Flush() }
