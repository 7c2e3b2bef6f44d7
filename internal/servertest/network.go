package servertest

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A Network has named servers in memory, which a test can kill and replace. It is safe for
// concurrent use. Use [NewNetwork] to create one.
type Network struct {
	t testing.TB

	mu sync.Mutex
	// Guarded by mu.
	servers map[string]*Server
	aliases map[string][]string
}

// NewNetwork returns a Network without servers.
func NewNetwork(t testing.TB) *Network {
	return &Network{t: t, servers: make(map[string]*Server), aliases: make(map[string][]string)}
}

// Start starts a server of source, like the function [Start]. The name is the host name of the
// server. The server replaces an earlier server of the same name. Options.Sockets must be false.
func (n *Network) Start(name string, source listwatch.Source, o Options) *Server {
	n.t.Helper()
	s := Start(n.t, source, o)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[name] = s
	return s
}

// Kill stops a server like a power failure: it resets the connections of the server. It
// returns when the watches of the server have ended.
func (n *Network) Kill(name string) {
	n.mu.Lock()
	s := n.servers[name]
	delete(n.servers, name)
	n.mu.Unlock()
	s.Kill()
	_ = s.WatchServer.Drain(context.Background()) // only waits: all connections have been reset
}

// SetAlias makes alias another host name of the named servers. Each connection to the alias goes to
// one of these servers that is running, chosen at random.
func (n *Network) SetAlias(alias string, names ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.aliases[alias] = names
}

// Transport returns the transport.Network with which clients reach the servers.
func (n *Network) Transport() transport.Network { return transport.Network{Dial: n.dial} }

// CountingTransport is like Transport, but adds the bytes that clients read to read.
func (n *Network) CountingTransport(read *atomic.Int64) transport.Network {
	return transport.Network{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := n.dial(ctx, network, address)
		return countingConn{c, read}, err
	}}
}

// A countingConn counts the bytes that are read.
type countingConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

func (n *Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	s := n.lookup(host)
	if s == nil {
		return nil, &net.OpError{Op: "dial", Net: "mem", Err: syscall.ECONNREFUSED}
	}
	return s.Dial(ctx, network, address)
}

// lookup returns a running server, or nil.
func (n *Network) lookup(host string) *Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	names, ok := n.aliases[host]
	if !ok {
		return n.servers[host]
	}
	var running []*Server
	for _, name := range names {
		if s := n.servers[name]; s != nil {
			running = append(running, s)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return running[rand.IntN(len(running))]
}
