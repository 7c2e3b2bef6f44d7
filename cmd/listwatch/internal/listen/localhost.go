package listen

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// requireLocalHost refuses requests whose Host header is not a loopback name. A loopback
// server without credentials trusts every local client. Without this check, a web page
// whose host name resolves to 127.0.0.1 could use the server from a browser (DNS
// rebinding).
func requireLocalHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocalHost(r.Host) {
			apihttp.WriteError(w, r, &listwatch.Error{
				Code: listwatch.Forbidden,
				Message: fmt.Sprintf(
					"Host %q is not a loopback name, and without credentials the server accepts only loopback names; "+
						"use localhost, or start the server with --token-file or --insecure", r.Host),
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
