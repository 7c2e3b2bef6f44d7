package handshake

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// refusalStatuses are the statuses with which servers and proxies refuse a transport that
// they do not support.
var refusalStatuses = map[string][]int{
	"h1": {http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported},
	"h2": {http.StatusHTTPVersionNotSupported, http.StatusNotImplemented, http.StatusUpgradeRequired},
	"ws": {
		http.StatusForbidden, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUpgradeRequired,
		http.StatusNotImplemented,
	},
}

// fallback runs a client against a server that refuses the client's first transport.
func fallback(e *harness.Env) {
	for _, code := range refusalStatuses[e.Transport] {
		var used []string
		at := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if kind := transportOf(r); kind == e.Transport {
				w.WriteHeader(code)
				return
			}
			e.Internals.Handler.ServeHTTP(w, r)
		}))
		var others []transport.Client
		for _, w := range harness.AllVariants {
			if w.Transport != e.Transport {
				others = append(others, e.NewClient(at.Instance, w))
			}
		}
		trace := &client.Trace{Opened: func(name string, _ listwatch.Version) { used = append(used, name) }}
		r := e.RemoteTraced(at, trace, others...)
		start := e.Put("a")
		e.Put("b")
		w := e.Follow(r, start)
		e.Delete("b")
		for want := start + 1; want <= start+2; want++ {
			if got, err := e.NextOf(w); err != nil || got.Version != want {
				e.Fatalf("refused with status %d: got version %v, %v; want version %d", code, got.Version, err, want)
			}
		}
		w.Close()
		if len(used) != 1 || used[0] == at.Client.Name() {
			e.Errorf("refused with status %d: opened watches with the transports %q, want exactly one, with another "+
				"transport", code, used)
		}
	}
}

func transportOf(r *http.Request) string {
	switch {
	case r.Header.Get("Upgrade") != "":
		return "ws"
	case r.ProtoMajor == 2:
		return "h2"
	}
	return "h1"
}
