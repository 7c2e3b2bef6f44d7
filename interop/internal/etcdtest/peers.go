package etcdtest

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Peers holds proxies between the members of a cluster. They can disconnect a member from the others
// while clients still reach it.
type Peers struct {
	t testing.TB

	mu sync.Mutex
	// Guarded by mu.
	cutID          string             // the ID of the disconnected member in etcd's own form, or ""
	cutNumber      int                // its number
	conns          map[*peerConn]bool // the open connections
	refused, ended int                // connections since Cut
}

// A peerConn is a connection through a proxy.
type peerConn struct {
	from string // the ID of the member that opened it
	to   int    // the number of the other member
	a, b net.Conn
}

// NewPeers returns proxies for StartCluster, which are stopped at the end of the test.
func NewPeers(t testing.TB) *Peers { return &Peers{t: t, conns: make(map[*peerConn]bool)} }

// Via starts the proxy for the member with the number i, which listens at peer, and returns its URL.
func (p *Peers) Via(i int, peer string) string {
	p.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c, i, strings.TrimPrefix(peer, "http://"))
		}
	}()
	p.t.Cleanup(func() {
		l.Close()
		<-done
		p.end(func(*peerConn) bool { return true })
	})
	return "http://" + l.Addr().String()
}

// senderHeader matches the header with the ID of the sending member.
var senderHeader = regexp.MustCompile(`(?i)\r\nX-Server-From: ([0-9a-f]+)\r\n`)

// pass reads the sender from the header of the first request and forwards the connection.
func (p *Peers) pass(c net.Conn, to int, address string) {
	defer c.Close()
	head := make([]byte, 0, 4096)
	for !bytes.Contains(head, []byte("\r\n\r\n")) && len(head) < cap(head) {
		n, err := c.Read(head[len(head):cap(head)])
		if err != nil {
			return
		}
		head = head[:len(head)+n]
	}
	conn := &peerConn{to: to, a: c}
	if m := senderHeader.FindSubmatch(head); m != nil {
		conn.from = string(m[1])
	}
	up, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer up.Close()
	conn.b = up
	if !p.open(conn) {
		return
	}
	defer p.close(conn)
	if _, err := up.Write(head); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(up, c) // returns when either side is closed
		up.Close()
	}()
	_, _ = io.Copy(c, up)
}

func (p *Peers) open(c *peerConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isCut(c) {
		p.refused++
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Peers) close(c *peerConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Peers) isCut(c *peerConn) bool {
	return p.cutID != "" && (c.from == p.cutID || c.to == p.cutNumber)
}

// Cut disconnects the member with the given ID and number from all others, in both directions, until
// Heal is called.
func (p *Peers) Cut(id string, number int) {
	p.mu.Lock()
	p.cutID, p.cutNumber = id, number
	p.mu.Unlock()
	p.end(p.isCut)
}

// Heal allows all connections again. It returns the numbers of connections that were closed and
// refused since Cut.
func (p *Peers) Heal() (ended, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended, refused = p.ended, p.refused
	p.cutID, p.ended, p.refused = "", 0, 0
	return ended, refused
}

func (p *Peers) end(which func(*peerConn) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if which(c) {
			c.a.Close()
			c.b.Close()
			p.ended++
		}
	}
}
