package cases

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// refusals are how servers and proxies say that they don't speak a transport.
var refusals = map[string][]int{
	"h1": {http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported},
	"h2": {http.StatusHTTPVersionNotSupported, http.StatusNotImplemented, http.StatusUpgradeRequired},
	"ws": {http.StatusForbidden, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUpgradeRequired, http.StatusNotImplemented},
}

// fallback has a server that refuses the first transport of a client.
func fallback(e *env) {
	for _, code := range refusals[e.on] {
		var used []string
		at := e.open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if kind := transportOf(r); kind == e.on {
				w.WriteHeader(code)
				return
			}
			e.inside.handler.ServeHTTP(w, r)
		}))
		var others []transport.Client
		for _, w := range ways {
			if w.on != e.on {
				others = append(others, e.newClient(at.Instance, w))
			}
		}
		trace := &client.Trace{Opened: func(name string, _ listwatch.Version) { used = append(used, name) }}
		r := e.remoteTraced(at, trace, others...)
		start := e.put("a")
		e.put("b")
		w := e.follow(r, start)
		e.delete("b")
		for want := start + 1; want <= start+2; want++ {
			if got, err := e.nextOf(w); err != nil || got.Version != want {
				e.Fatalf("refused by %d: got %v, %v; want version %d", code, got.Version, err, want)
			}
		}
		w.Close()
		if len(used) != 1 || used[0] == at.client.Name() {
			e.Errorf("refused by %d: used %q, want another transport, once", code, used)
		}
	}
}

func transportOf(r *http.Request) string {
	switch {
	case r.ProtoMajor == 2:
		return "h2"
	case r.Header.Get("Upgrade") != "":
		return "ws"
	}
	return "h1"
}
