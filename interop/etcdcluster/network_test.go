package etcdcluster

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance/fault"
)

// A network lies between the members of a cluster. Each connection goes through the proxy of the pair of members that it connects, so that one
// member can be cut off while the others go on.
type network struct {
	t    testing.TB
	work sync.WaitGroup // of fronts and proxies

	mu sync.Mutex
	// Guarded by mu.
	pairs   map[pair]*link
	members map[string]int // by the id that they call themselves by
	away    int            // the member that is cut off; negative: none
	closed  bool
}

// A pair is who dials whom. Members who did not say who they are, as those who ask for no more than a version, are the member "".
type pair struct {
	from string
	to   int
}

// A link is the proxy of a pair.
type link struct {
	proxy *fault.Proxy
	in    *handed
}

func newNetwork(t testing.TB) *network {
	n := &network{t: t, pairs: make(map[pair]*link), away: -1}
	t.Cleanup(n.close)
	return n
}

// via returns the URL by which others reach member i, which listens at the URL peer.
func (n *network) via(i int, peer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { l.Close() })
	n.work.Go(func() { // ends with l
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.work.Go(func() { n.accept(c.(*net.TCPConn), i, strings.TrimPrefix(peer, "http://")) })
		}
	})
	return "http://" + l.Addr().String()
}

// accept finds out who is calling and hands the connection on.
func (n *network) accept(c *net.TCPConn, to int, addr string) {
	_ = c.SetReadDeadline(time.Now().Add(patience)) // who never says a word is nobody
	var heard bytes.Buffer
	r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &heard)))
	if err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	p := pair{r.Header.Get("X-Server-From"), to}
	l := n.link(p, addr)
	if l == nil {
		_ = c.Close()
		return
	}
	l.in.hand(&replayed{TCPConn: c, first: heard.Bytes()})
}

// link returns that of p, whose server listens at addr; nil: the network is closed.
func (n *network) link(p pair, addr string) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	if l := n.pairs[p]; l != nil {
		return l
	}
	l := &link{in: newHanded()}
	l.proxy = &fault.Proxy{
		Listener: l.in,
		Dial:     func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) },
		Plan: func(int) fault.Fault {
			if n.apart(p) {
				return fault.Fault{Kind: fault.Stall}
			}
			return fault.Fault{}
		},
	}
	n.pairs[p] = l
	n.work.Go(func() { _ = l.proxy.Serve() }) // ends with the proxy
	return l
}

// know says what the members call themselves.
func (n *network) know(members map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members = members
}

func (n *network) apart(p pair) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.isApart(p)
}

// isApart reports whether nothing may pass between a pair. Needs mu. A connection of nobody in particular may be used by anybody later.
func (n *network) isApart(p pair) bool {
	return n.away >= 0 && (p.from == "" || p.to == n.away || n.members[p.from] == n.away)
}

// cutOff holds back everything that member i and the others send to each other, until restore.
func (n *network) cutOff(i int) {
	n.mu.Lock()
	n.away = i
	n.mu.Unlock()
	n.strike(fault.Stall)
}

// restore lets the member that was cut off come back. What was under way arrives late, as TCP sends it again, or its connections are reset.
func (n *network) restore(late bool) {
	if late {
		n.strike(fault.None)
	} else {
		n.strike(fault.Reset)
	}
	n.mu.Lock()
	n.away = -1
	n.mu.Unlock()
}

// strike does k to all that is apart.
func (n *network) strike(k fault.Kind) {
	n.mu.Lock()
	var apart []*fault.Proxy
	for p, l := range n.pairs {
		if n.isApart(p) {
			apart = append(apart, l.proxy)
		}
	}
	n.mu.Unlock()
	for _, p := range apart {
		p.InjectAll(fault.Fault{Kind: k})
	}
}

func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	for _, l := range n.pairs {
		_ = l.proxy.Close()
	}
	n.work.Wait()
}

// A replayed connection was read from already.
type replayed struct {
	*net.TCPConn
	first []byte // owned by the reader
}

func (c *replayed) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.TCPConn.Read(b)
}

// A handed listener has connections that were accepted elsewhere.
type handed struct {
	conns chan net.Conn
	once  sync.Once
	over  chan struct{}
}

func newHanded() *handed { return &handed{conns: make(chan net.Conn), over: make(chan struct{})} }

func (h *handed) hand(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.over:
		_ = c.Close()
	}
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.over:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error {
	h.once.Do(func() { close(h.over) })
	return nil
}

func (h *handed) Addr() net.Addr { return &net.TCPAddr{} }
