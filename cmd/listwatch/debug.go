package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// newDebug shows the inside of a server. It asks for no credentials, so it belongs on loopback.
func newDebug(s *watchserver.Server) *http.ServeMux {
	mux := http.NewServeMux()
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

func (s *service) debugHandler() http.Handler {
	mux := newDebug(s.server)
	mux.HandleFunc("POST /debug/compact", func(w http.ResponseWriter, r *http.Request) {
		if !transport.OriginAllowed(r, nil) {
			watchserver.WriteError(w, r, &listwatch.Error{Code: listwatch.Forbidden, Message: "pages of other origins may not do this"})
			return
		}
		s.db.Compact()
		watchserver.WriteJSON(w, r, http.StatusOK, map[string]string{"compactedTo": s.db.Version().String()})
	})
	return mux
}
