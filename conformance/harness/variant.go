package harness

import (
	"context"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// A Variant is how a server is reached: a transport, the client's half of it, and the server's half, where the server is ours.
type Variant struct {
	Name       string
	Transport  string // h1, h2 or ws
	Server     transport.Server
	newClient  func(transport.Network) transport.Client
	serverOnly bool // it differs from another way only in our server
}

// AllVariants are the variants that cases are run in.
var AllVariants = []Variant{
	{"h1", "h1", chunked.Server{}, newH1, false},
	{"h1-standard", "h1", chunked.Server{DisableHijack: true}, newH1, true},
	{"h2", "h2", h2.Server{}, newH2, false},
	{"ws-gorilla", "ws", &websocket.Server{}, newWS(websocket.Gorilla), false},
	{"ws-nhooyr", "ws", &websocket.Server{Backend: websocket.Nhooyr}, newWS(websocket.Nhooyr), false},
}

func newH1(n transport.Network) transport.Client { return &chunked.Client{Network: n} }

func newH2(n transport.Network) transport.Client { return &h2.Client{Network: n} }

func newWS(b websocket.Backend) func(transport.Network) transport.Client {
	return func(n transport.Network) transport.Client { return &websocket.Client{Network: n, Backend: b} }
}

// Ways returns the names of all the ways to reach a server.
func Variants() []string {
	var names []string
	for _, w := range AllVariants {
		names = append(names, w.Name)
	}
	return names
}

// TransportOf returns the transport of a way, by its name: h1, h2 or ws; empty: there is no such way.
func TransportOf(name string) string {
	for _, w := range AllVariants {
		if w.Name == name {
			return w.Transport
		}
	}
	return ""
}

// Reach opens a watch of s in every way, and returns the names of the ways that it serves and, for the others, why it does not.
func ProbeVariants(ctx context.Context, s *Instance) (served []string, refused map[string]error) {
	refused = map[string]error{}
	for _, w := range AllVariants {
		if w.serverOnly {
			continue
		}
		if err := w.probe(ctx, s); err != nil {
			refused[w.Name] = err
			continue
		}
		served = append(served, w.Name)
	}
	return served, refused
}

func (w Variant) probe(ctx context.Context, s *Instance) error {
	c := w.newClient(s.Network)
	if idle, ok := c.(interface{ CloseIdleConnections() }); ok {
		defer idle.CloseIdleConnections()
	}
	r, err := c.Dial(ctx, &transport.Request{URL: s.WatchURL("watch=1"), Header: s.Header})
	if err != nil {
		return err
	}
	return r.Close()
}

// WaysOf returns the ways in which c is tested on t.
func (c Case) WaysOf(t Target) []Variant {
	return slices.DeleteFunc(slices.Clone(AllVariants), func(w Variant) bool {
		known := t.Variants == nil && (!w.serverOnly || t.Abilities&InProcess != 0) || slices.Contains(t.Variants, w.Name)
		return !known || !slices.Contains(strings.Fields(c.Transports), w.Transport)
	})
}
