package relaycmd

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubestatus"
)

// ready returns an error if a relay is not ready to serve reads.
func (s *relayServer) ready() error {
	var why []string
	for _, r := range s.relays.all() {
		switch status := r.Health(); {
		case !status.Ready:
			why = append(why, fmt.Sprintf("%s: the state of the upstream is not complete yet, after %d objects and events",
				r.name, status.Objects))
		case s.options.maxBehind > 0 && status.Lag < 0:
			why = append(why, fmt.Sprintf("%s: the lag behind the upstream is unknown", r.name))
		case s.options.maxBehind > 0 && status.Lag > s.options.maxBehind:
			why = append(why, fmt.Sprintf("%s: may lag %v behind the upstream", r.name, status.Lag.Round(time.Second)))
		}
	}
	if why == nil {
		return nil
	}
	return &listwatch.Error{Code: listwatch.Unavailable, Message: strings.Join(why, "\n")}
}

// addProbes adds the paths of health probes to mux. /readyz fails while ready returns an error.
func addProbes(mux *http.ServeMux, ready func() error) {
	for _, path := range []string{"GET /healthz", "GET /livez"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	}
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, kubestatus.Of(err).Message)
			return
		}
		fmt.Fprint(w, "ok")
	})
}

// A relayStatus is a [relay.Health] as JSON. Durations are in seconds.
type relayStatus struct {
	Name         string   `json:"name"`
	Encoding     string   `json:"encoding,omitempty"`
	Ready        bool     `json:"ready"`
	Following    bool     `json:"following"`
	Version      string   `json:"version"`
	Upstream     string   `json:"upstream"`
	Epoch        string   `json:"epoch,omitempty"`
	Behind       *float64 `json:"behindSeconds"` // null if unknown
	Silent       *float64 `json:"silentSeconds"` // null if nothing was received yet
	Error        string   `json:"error,omitempty"`
	ProbeError   string   `json:"probeError,omitempty"`
	Objects      int      `json:"objects"`
	Watchers     int      `json:"watchers"`
	HistoryBytes int64    `json:"historyBytes"`
	Floor        string   `json:"floor"`
}

func (s *relayServer) serveStatus(w http.ResponseWriter, r *http.Request) {
	all := []relayStatus{}
	for _, relayed := range s.relays.all() {
		s := relayed.Health()
		shown := relayStatus{
			Name: relayed.name, Encoding: relayed.encoding, Ready: s.Ready, Following: s.Following,
			Version:  s.Version.String(),
			Upstream: s.UpstreamVersion.String(), Epoch: s.Epoch,
			Objects: s.Objects, Watchers: s.Watchers, HistoryBytes: s.HistoryBytes, Floor: s.Floor.String(),
		}
		if s.Lag >= 0 {
			behind := s.Lag.Seconds()
			shown.Behind = &behind
		}
		if !s.LastHeard.IsZero() {
			silent := time.Since(s.LastHeard).Seconds()
			shown.Silent = &silent
		}
		if s.Err != nil {
			shown.Error = s.Err.Error()
		}
		if err := relayed.ProbeErr(); err != nil {
			shown.ProbeError = err.Error()
		}
		all = append(all, shown)
	}
	apihttp.WriteJSON(w, r, http.StatusOK, map[string]any{"relays": all})
}
