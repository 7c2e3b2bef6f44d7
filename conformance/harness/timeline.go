package harness

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// A timeline is the last of what a case did and saw: what it wrote to the collection, and the bytes on its connections.
type timeline struct {
	start time.Time

	mu    sync.Mutex
	lines []moment // guarded by mu
	lost  int      // guarded by mu; lines that were dropped from the front
	conns int      // guarded by mu
	// secrets are never shown; guarded by mu.
	secrets []string
}

// A moment is a line of a timeline, which is put into words when somebody wants to see it: most are never seen.
type moment struct {
	at   time.Duration
	text func() string
}

func (m moment) String() string { return fmt.Sprintf("%8.1f ms  %s", m.at.Seconds()*1000, m.text()) }

const (
	timelineLines = 60
	// timelineBytes is how much of a read or write is shown.
	timelineBytes = 320
)

// NewTimeline returns an empty timeline that starts now.
func NewTimeline() *timeline { return &timeline{start: time.Now()} }

// notef adds a line. The arguments are put into words now, for they may change.
func (t *timeline) notef(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.note(func() string { return text })
}

// note adds a line, which text may be asked for later.
func (t *timeline) note(text func() string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == timelineLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
		t.lost++
	}
	t.lines = append(t.lines, moment{time.Since(t.start), text})
}

// String returns the lines, the oldest first.
func (t *timeline) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	if t.lost > 0 {
		all = append(all, fmt.Sprintf("   … %d earlier lines", t.lost))
	}
	for _, m := range t.lines {
		all = append(all, m.String())
	}
	return strings.Join(all, "\n")
}

// hide keeps the values of h out of the timeline.
func (t *timeline) hide(h http.Header) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, values := range h {
		t.secrets = append(t.secrets, values...)
	}
}

// censored returns p, as it may be shown.
func (t *timeline) censored(p []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.secrets {
		p = bytes.ReplaceAll(p, []byte(s), []byte("(hidden)"))
	}
	return p
}

// tap returns n with connections whose bytes are in the timeline.
func (t *timeline) tap(n transport.Network) transport.Network {
	dial := n.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	n.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			t.notef("dial %s: %v", addr, err)
			return nil, err
		}
		t.mu.Lock()
		t.conns++
		number := t.conns
		t.mu.Unlock()
		return &tapped{c, t, number}, nil
	}
	return n
}

// A tapped connection tells a timeline what goes over it.
type tapped struct {
	net.Conn
	log    *timeline
	number int
}

// NetConn returns the connection below, as that of a tls.Conn does.
func (c *tapped) NetConn() net.Conn { return c.Conn }

// Read tells what came.
func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.tell("←", p[:n], err)
	return n, err
}

// Write tells what goes before it is gone: the answer may be quicker than the word of it.
func (c *tapped) Write(p []byte) (int, error) {
	c.tell("→", p, nil)
	n, err := c.Conn.Write(p)
	c.tell("→", nil, err)
	return n, err
}

// Close tells that we closed it.
func (c *tapped) Close() error {
	c.log.notef("conn %d closed by the client", c.number)
	return c.Conn.Close()
}

func (c *tapped) tell(direction string, p []byte, err error) {
	if len(p) > 0 {
		shown, more := c.log.censored(p), ""
		if len(shown) > timelineBytes {
			shown, more = shown[:timelineBytes], "…"
		}
		c.log.notef("conn %d %s %d bytes %q%s", c.number, direction, len(p), shown, more)
	}
	if err != nil {
		c.log.notef("conn %d %s %v", c.number, direction, err)
	}
}
