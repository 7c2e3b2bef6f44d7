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

// Peers are proxies before the peer ports of the members of a cluster, so that a member can be cut off from the others while clients still reach it.
type Peers struct {
	t testing.TB

	mu sync.Mutex
	// Guarded by mu.
	cut            string             // the ID of the member that is cut off, as members name themselves; empty: none is
	index          map[string]int     // of members, by ID
	conns          map[*peerConn]bool // that are open
	refused, ended int
}

type peerConn struct {
	from string
	to   int
	a, b net.Conn
}

// NewPeers returns proxies for StartCluster, which end with the test.
func NewPeers(t testing.TB) *Peers { return &Peers{t: t, conns: make(map[*peerConn]bool)} }

// Via starts the proxy before the member of a number.
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

// from is the header by which members say who they are.
var from = regexp.MustCompile(`(?i)\r\nX-Server-From: ([0-9a-f]+)\r\n`)

// pass reads the head of the first request, which says who sent it, and passes everything on.
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
	if m := from.FindSubmatch(head); m != nil {
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
		_, _ = io.Copy(up, c) // it ends when either side does
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
	to, known := p.index[p.cut]
	return p.cut != "" && (c.from == p.cut || known && c.to == to)
}

// Cut cuts the member of an ID and a number off from all others, in both directions, until Heal.
func (p *Peers) Cut(id string, number int) {
	p.mu.Lock()
	p.cut, p.index = id, map[string]int{id: number}
	p.mu.Unlock()
	p.end(p.isCut)
}

// Heal lets everybody talk again. It returns how many connections were ended and refused.
func (p *Peers) Heal() (ended, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended, refused = p.ended, p.refused
	p.cut, p.ended, p.refused = "", 0, 0
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
