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
	// isResumable is true if watchers can request the difference to the state that they have.
	isResumable bool
}

// Rivals are all rivals, in the order of the table.
var Rivals = []Rival{
	{"floor", "floor: bare TCP", "floor", "tcp", false},
	{"sse", "net/http, SSE by hand", "sse", "http1", false},
	{"go-sse", "tmaxmax/go-sse", "go-sse", "http1", false},
	{"gorilla", "gorilla/websocket, prepared messages", "gorilla", "websocket", false},
	{"coder", "coder/websocket", "coder", "websocket", false},
	{"centrifuge", "centrifuge, WebSocket", "centrifuge", "centrifuge", false},
	{"grpc", "grpc-go, prepared messages", "grpc", "grpc", false},
	{"kubernetes", "Kubernetes API server, HTTP/2, TLS", "kubernetes", "h2-tls", false},
	{"kubernetes-h2", "Kubernetes API server on our HTTP/2, TLS", "kubernetes-h2", "h2-tls", false},
	{"listwatch-chunked", "listwatch, HTTP/1.1", "listwatch", "http1", true},
	{"listwatch-websocket", "listwatch, WebSocket", "listwatch", "websocket", true},
	{"listwatch-h2", "listwatch, HTTP/2", "listwatch", "h2", true},
	{"listwatch-h2-tls", "listwatch, HTTP/2, TLS", "listwatch-tls", "h2-tls", true},
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
