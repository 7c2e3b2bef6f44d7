// Package runner starts the servers and clients of each rival as processes, lets them do the same
// work, and measures it.
package runner

import (
	"fmt"
	"slices"
	"strings"
)

// A Rival is a server with one kind of clients.
type Rival struct {
	// Name selects the rival on the command line, and Label names it in the table.
	Name, Label string

	server string // a name in servers.All, or in kubernetesServers
	client string // see clients.Target
}

// Rivals are all rivals, in the order of the table.
var Rivals = []Rival{
	{"floor", "floor: bare TCP", "floor", "tcp"},
	{"sse", "net/http, SSE by hand", "sse", "http1"},
	{"go-sse", "tmaxmax/go-sse", "go-sse", "http1"},
	{"gorilla", "gorilla/websocket, prepared messages", "gorilla", "websocket"},
	{"coder", "coder/websocket", "coder", "websocket"},
	{"centrifuge", "centrifuge, WebSocket", "centrifuge", "centrifuge"},
	{"grpc", "grpc-go, prepared messages", "grpc", "grpc"},
	{"kubernetes", "Kubernetes API server, HTTP/2, TLS", "kubernetes", "h2-tls"},
	{"kubernetes-h2", "Kubernetes API server on our HTTP/2, TLS", "kubernetes-h2", "h2-tls"},
	{"listwatch-chunked", "listwatch, HTTP/1.1", "listwatch", "http1"},
	{"listwatch-websocket", "listwatch, WebSocket", "listwatch", "websocket"},
	{"listwatch-h2", "listwatch, HTTP/2", "listwatch", "h2"},
	{"listwatch-h2-tls", "listwatch, HTTP/2, TLS", "listwatch-tls", "h2-tls"},
}

// Select returns the rivals with the given names, separated by commas. If names is empty, it
// returns all.
func Select(names string) ([]Rival, error) {
	if names == "" {
		return Rivals, nil
	}
	var selected []Rival
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(Rivals, func(r Rival) bool { return r.Name == name })
		if i < 0 {
			var known []string
			for _, r := range Rivals {
				known = append(known, r.Name)
			}
			return nil, fmt.Errorf("rival %q: must be %s", name, strings.Join(known, ", "))
		}
		selected = append(selected, Rivals[i])
	}
	return selected, nil
}
