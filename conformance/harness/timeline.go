package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// A timeline records the latest actions and observations of a case: writes to the
// collection, received events, and the bytes on its connections. It is printed if the case
// fails.
type timeline struct {
	began time.Time

	mu sync.Mutex
	// Guarded by mu.
	lines   [timelineLines]timelineEntry // line n of the case is at n % timelineLines
	noted   int                          // number of lines so far; only the latest are kept
	conns   int
	secrets []string // values that must not be printed

	keys keyLog // the secrets of the connections that use TLS
}

// A timelineEntry is a line of a timeline. The text is built only when the timeline is printed,
// because most timelines never are.
type timelineEntry struct {
	at   time.Duration
	text func() string
}

func (t timelineEntry) String() string {
	return fmt.Sprintf("%8.1f ms  %s", t.at.Seconds()*1000, t.text())
}

const (
	timelineLines = 60
	// timelineBytes is the maximum number of bytes shown for one read or write.
	timelineBytes = 320
)

// NewTimeline returns an empty timeline that starts now.
func NewTimeline() *timeline {
	return &timeline{began: time.Now(), keys: keyLog{secrets: map[string][]byte{}}}
}

// notef adds a line. It formats the arguments immediately, because they may change later.
func (t *timeline) notef(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.note(func() string { return text })
}

// note adds a line. text may be called later, from another goroutine.
func (t *timeline) note(text func() string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines[t.noted%timelineLines] = timelineEntry{time.Since(t.began), text}
	t.noted++
}

// String returns the recorded lines, oldest first.
func (t *timeline) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	dropped := max(0, t.noted-timelineLines)
	if dropped > 0 {
		all = append(all, fmt.Sprintf("   (%d earlier lines omitted)", dropped))
	}
	for n := dropped; n < t.noted; n++ {
		all = append(all, t.lines[n%timelineLines].String())
	}
	return strings.Join(all, "\n")
}

// hide prevents the values of h from being printed.
func (t *timeline) hide(h http.Header) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, values := range h {
		t.secrets = append(t.secrets, values...)
	}
}

// redact returns p with all secrets replaced.
func (t *timeline) redact(p []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.secrets {
		p = bytes.ReplaceAll(p, []byte(s), []byte("(hidden)"))
	}
	return p
}

// recordConns returns n with connections that record their bytes in the timeline. If they use TLS,
// the timeline shows the bytes in the clear.
func (t *timeline) recordConns(n transport.Network, usesTLS bool) transport.Network {
	if usesTLS {
		if n.TLS = n.TLS.Clone(); n.TLS == nil {
			n.TLS = new(tls.Config)
		}
		n.TLS.KeyLogWriter = &t.keys
	}
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
		r := &recordedConn{Conn: c, log: t, number: number}
		if usesTLS {
			r.tls = newTLSView(&t.keys)
		}
		return r, nil
	}
	return n
}

// recordedConn is a connection that records its bytes in a timeline.
type recordedConn struct {
	net.Conn
	log    *timeline
	number int
	tls    *tlsView // nil if the connection does not use TLS
}

// NetConn returns the wrapped connection, like the method of tls.Conn.
func (r *recordedConn) NetConn() net.Conn { return r.Conn }

// Read records the bytes that it reads.
func (r *recordedConn) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.record("←", p[:n], err)
	return n, err
}

// Write records the bytes before it writes them, because the response may arrive before
// Write returns.
func (r *recordedConn) Write(p []byte) (int, error) {
	r.record("→", p, nil)
	n, err := r.Conn.Write(p)
	r.record("→", nil, err)
	return n, err
}

// Close records that the client closed the connection.
func (r *recordedConn) Close() error {
	r.log.notef("conn %d closed by the client", r.number)
	return r.Conn.Close()
}

// recordBytes adds a line for the bytes of p. It copies the bytes that the line shows, so that they
// are formatted only if the timeline is printed: formatting them takes longer than a read.
func (r *recordedConn) recordBytes(direction string, p []byte) {
	shown, more := r.log.redact(p), ""
	if len(shown) > timelineBytes {
		shown, more = shown[:timelineBytes], "..."
	}
	text, n := string(shown), len(p)
	r.log.note(func() string {
		return fmt.Sprintf("conn %d %s %d bytes %q%s", r.number, direction, n, text, more)
	})
}

// record adds a line for the bytes of p and a line for err, if any.
func (r *recordedConn) record(direction string, p []byte, err error) {
	if len(p) > 0 && (r.tls == nil || !r.tls.add(direction, p, r.recordBytes)) {
		r.recordBytes(direction, p)
	}
	if err != nil {
		r.log.notef("conn %d %s %v", r.number, direction, err)
	}
}
