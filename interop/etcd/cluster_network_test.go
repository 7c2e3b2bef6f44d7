package etcd

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

// A memberNetwork connects the members of a cluster. It has a proxy for each pair of
// members, so that one member can be disconnected from the others.
type memberNetwork struct {
	t    testing.TB
	work sync.WaitGroup // the goroutines of the listeners and proxies

	mu sync.Mutex
	// Guarded by mu.
	pairs        map[memberPair]*pairProxy
	members      map[string]int // the numbers of the members by ID, in the text form of etcd
	cutOffNumber int            // the number of the disconnected member, or -1
	closed       bool
}

// A memberPair identifies the connections from one member to another. from is the ID of the sender,
// or "" if the sender does not send its ID, as in requests for the version. to is the number of the
// receiver.
type memberPair struct {
	from string
	to   int
}

// A pairProxy is the proxy for the connections of a memberPair.
type pairProxy struct {
	proxy    *fault.Proxy
	accepted *handoffListener
}

// forwarder is the sender of renewals that a member forwards to its leader. These requests do not
// say which member sends them. It cannot be the disconnected one, which has no leader.
const forwarder = "forwarder"

func newMemberNetwork(t testing.TB) *memberNetwork {
	n := &memberNetwork{t: t, pairs: make(map[memberPair]*pairProxy), cutOffNumber: -1}
	t.Cleanup(n.close)
	return n
}

// via returns the URL of a new listener through which the other members reach member i. The network
// forwards the connections to the given peer URL, at which member i listens.
func (n *memberNetwork) via(i int, peer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { l.Close() })
	n.work.Go(func() { // returns when l is closed
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

// accept reads the first request on c to find out which member opened the connection. It then
// passes the connection to the proxy for this sender and the receiver. to and addr are the number
// and the address of the receiver.
func (n *memberNetwork) accept(c *net.TCPConn, to int, addr string) {
	_ = c.SetReadDeadline(time.Now().Add(waitTimeout))
	var consumed bytes.Buffer
	r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &consumed)))
	if err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	p := memberPair{r.Header.Get("X-Server-From"), to}
	if strings.HasPrefix(r.URL.Path, "/leases") {
		p.from = forwarder
	}
	l := n.proxyFor(p, addr)
	if l == nil {
		_ = c.Close()
		return
	}
	request := consumed.Bytes()
	if p.from == "" || p.from == forwarder {
		// Close the connection after this request. Otherwise the sender could reuse it for requests
		// with its ID, which would then stall while any member is cut off.
		request = bytes.Replace(request, []byte("\r\n"), []byte("\r\nConnection: close\r\n"), 1)
	}
	l.accepted.deliver(&replayConn{TCPConn: c, consumed: request})
}

// proxyFor returns the proxy for the connections of p, or nil if the network is closed. A new proxy
// forwards to the member that listens at addr.
func (n *memberNetwork) proxyFor(p memberPair, addr string) *pairProxy {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	if l := n.pairs[p]; l != nil {
		return l
	}
	l := &pairProxy{accepted: newHandoffListener()}
	l.proxy = &fault.Proxy{
		Listener: l.accepted,
		Dial:     func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) },
		Plan: func(int) fault.Fault {
			if n.isCutOff(p) {
				return fault.Fault{Kind: fault.Stall}
			}
			return fault.Fault{}
		},
	}
	n.pairs[p] = l
	n.work.Go(func() { _ = l.proxy.Serve() }) // returns when the proxy is closed
	return l
}

// setMembers sets the numbers of the members by their IDs.
func (n *memberNetwork) setMembers(members map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members = members
}

func (n *memberNetwork) isCutOff(p memberPair) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.isCutOffLocked(p)
}

// isCutOffLocked reports whether the connections of p are blocked. The caller must hold mu. While a
// member is disconnected, connections with an unknown sender are blocked as well, because the
// sender may be that member.
func (n *memberNetwork) isCutOffLocked(p memberPair) bool {
	if p.from == forwarder {
		return p.to == n.cutOffNumber
	}
	return n.cutOffNumber >= 0 && (p.from == "" || p.to == n.cutOffNumber || n.members[p.from] == n.cutOffNumber)
}

// cutOff stalls all connections between member i and the others until restore is called.
func (n *memberNetwork) cutOff(i int) {
	n.mu.Lock()
	n.cutOffNumber = i
	blocked := n.blockedProxiesLocked()
	n.mu.Unlock()
	injectAll(blocked, fault.Stall)
}

// restore reconnects the disconnected member. If late is true, its connections continue and
// deliver the stalled data late, like a TCP retransmission. Otherwise its connections are
// reset.
func (n *memberNetwork) restore(late bool) {
	n.mu.Lock()
	blocked := n.blockedProxiesLocked()
	// Set cutOffNumber before injecting the faults. Otherwise a connection that is opened in
	// between would stall, and no later call would end the stall.
	n.cutOffNumber = -1
	n.mu.Unlock()
	if late {
		injectAll(blocked, fault.None)
	} else {
		injectAll(blocked, fault.Reset)
	}
}

// blockedProxiesLocked returns the proxies whose connections are blocked. The caller must hold mu.
func (n *memberNetwork) blockedProxiesLocked() (blocked []*fault.Proxy) {
	for p, l := range n.pairs {
		if n.isCutOffLocked(p) {
			blocked = append(blocked, l.proxy)
		}
	}
	return blocked
}

func injectAll(proxies []*fault.Proxy, k fault.Kind) {
	for _, p := range proxies {
		p.InjectAll(fault.Fault{Kind: k})
	}
}

func (n *memberNetwork) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	for _, l := range n.pairs {
		_ = l.proxy.Close()
	}
	n.work.Wait()
}

// A replayConn is a connection whose reader first receives the bytes that accept has already read.
type replayConn struct {
	*net.TCPConn
	consumed []byte // owned by the reader
}

func (c *replayConn) Read(b []byte) (int, error) {
	if len(c.consumed) > 0 {
		n := copy(b, c.consumed)
		c.consumed = c.consumed[n:]
		return n, nil
	}
	return c.TCPConn.Read(b)
}

// A handoffListener is a listener whose Accept returns the connections passed to deliver.
type handoffListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newHandoffListener() *handoffListener {
	return &handoffListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (h *handoffListener) deliver(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed:
		_ = c.Close()
	}
}

func (h *handoffListener) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *handoffListener) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

func (h *handoffListener) Addr() net.Addr { return &net.TCPAddr{} }
