package listen

import (
	"net/http"
	"net/http/pprof"

	"github.com/listwatch/listwatch/watchserver"
)

// NewDebugMux returns a handler with profiles, the metrics and the open watches of f.WatchServer.
// It requires no credentials, so it must only be served on loopback.
func (f *Listeners) NewDebugMux() *http.ServeMux {
	s, mux := f.WatchServer, http.NewServeMux()
	mux.Handle("GET /metrics", f.Metrics.Handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/watches", func(w http.ResponseWriter, r *http.Request) {
		watchserver.WriteJSON(w, r, http.StatusOK, map[string]any{"watches": s.Watches()})
	})
	return mux
}
