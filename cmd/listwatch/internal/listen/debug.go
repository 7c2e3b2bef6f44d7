package listen

import (
	"net/http"
	"net/http/pprof"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/console"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/watchserver"
)

// NewDebugMux returns a handler with profiles, the metrics and the open watches of l.WatchServer.
// It requires no credentials, so it must only be served on loopback.
func (l *Listeners) NewDebugMux() *http.ServeMux {
	s, mux := l.WatchServer, http.NewServeMux()
	mux.Handle("GET /metrics", l.Metrics.Handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/watches", func(w http.ResponseWriter, r *http.Request) {
		apihttp.WriteJSON(w, r, http.StatusOK, map[string]any{"watches": s.Watches()})
	})
	mux.HandleFunc("POST /debug/watches/{id}/end", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		n := s.End(func(watch watchserver.Watch) bool { return strconv.FormatUint(watch.ID, 10) == id }, nil)
		if n == 0 {
			apihttp.WriteError(
				w, r, &listwatch.Error{
					Code: listwatch.NotFound, Message: "no open watch has the id " + strconv.Quote(id),
				})
			return
		}
		apihttp.WriteJSON(w, r, http.StatusOK, map[string]int{"ended": n})
	})
	console.AddTo(mux, l.apiURLs)
	return mux
}

// apiURLs returns the URLs of the endpoints that serve the API.
func (l *Listeners) apiURLs() []string {
	var urls []string
	for _, e := range l.Endpoints {
		if !e.access.debug && !e.access.metrics {
			urls = append(urls, e.url)
		}
	}
	return urls
}
