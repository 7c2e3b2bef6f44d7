package listen

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

// localHosts lets only requests through that name this machine as their Host. A server on loopback that asks for no credentials trusts
// whoever reaches it; a web page whose name was made to resolve to 127.0.0.1 reaches it too, as an origin of its own.
func requireLocalHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocalHost(r.Host) {
			watchserver.WriteError(w, r, &listwatch.Error{
				Code: listwatch.Forbidden,
				Message: fmt.Sprintf("Host %q is not this machine's loopback, for which alone the server is open without credentials; "+
					"ask for localhost, or start it with --token-file, or with --insecure", r.Host),
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
