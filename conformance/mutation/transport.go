package mutation

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// OnAccept returns a transport whose streams are accepted with what options makes of theirs, and are what change then makes of them. Nil
// functions change nothing.
func OnAccept(options func(*transport.Options), change func(*transport.Stream)) func(transport.Server) transport.Server {
	return func(s transport.Server) transport.Server { return &accepting{s, options, change} }
}

type accepting struct {
	transport.Server
	options func(*transport.Options)
	change  func(*transport.Stream)
}

// Accept changes options and stream.
func (a *accepting) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	if a.options != nil {
		a.options(&o)
	}
	stream, err := a.Server.Accept(w, r, o)
	if err == nil && a.change != nil {
		a.change(stream)
	}
	return stream, err
}

// OnSend returns a transport whose streams are sent by send.
func OnSend(send func(next transport.Sender, frames [][]byte) error) func(transport.Server) transport.Server {
	return OnAccept(nil, func(s *transport.Stream) { s.Sender = &sending{s.Sender, send} })
}

type sending struct {
	transport.Sender
	send func(next transport.Sender, frames [][]byte) error
}

// Send is the other one.
func (s *sending) Send(frames [][]byte) error { return s.send(s.Sender, frames) }

// OnClose returns a transport whose streams are closed by close.
func OnClose(close func(next transport.Sender, end transport.End) error) func(transport.Server) transport.Server {
	return OnAccept(nil, func(s *transport.Stream) { s.Sender = &closable{s.Sender, close} })
}

type closable struct {
	transport.Sender
	close func(next transport.Sender, end transport.End) error
}

// Close is the other one.
func (c *closable) Close(end transport.End) error { return c.close(c.Sender, end) }

// OnConns returns a network with connections that change wraps.
func OnConns(change func(net.Conn) net.Conn) func(transport.Network) transport.Network {
	return func(n transport.Network) transport.Network {
		dial := n.Dial
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		n.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return change(c), nil
		}
		return n
	}
}

// A Muffled connection passes over some of what a client writes.
type Muffled struct {
	net.Conn
	Keeps func(written []byte) bool
}

// NetConn returns the connection below.
func (m *Muffled) NetConn() net.Conn { return m.Conn }

// Write writes p, or says that it did.
func (m *Muffled) Write(p []byte) (int, error) {
	if !m.Keeps(p) {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

// A Sieve is a connection of HTTP/2 that loses the server's frames of one type.
type Sieve struct {
	net.Conn
	Loses http2.FrameType
	In    *bufio.Reader
	frame []byte // not read yet
}

// FrameHead is the size of the header of an HTTP/2 frame.
const FrameHead = 9

// Read reads frames.
func (s *Sieve) Read(p []byte) (int, error) {
	for len(s.frame) == 0 {
		head, err := s.In.Peek(FrameHead)
		if err != nil {
			return 0, err
		}
		frame := make([]byte, FrameHead+int(binary.BigEndian.Uint32(head)>>8))
		if _, err := io.ReadFull(s.In, frame); err != nil {
			return 0, err
		}
		if http2.FrameType(frame[3]) != s.Loses {
			s.frame = frame
		}
	}
	n := copy(p, s.frame)
	s.frame = s.frame[n:]
	return n, nil
}

// OnDials returns a client whose streams are opened by dial.
func OnDials(dial func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error)) func(transport.Client) transport.Client {
	return func(c transport.Client) transport.Client { return &dialling{c, dial} }
}

type dialling struct {
	transport.Client
	dial func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error)
}

// Dial is the other one.
func (d *dialling) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return d.dial(d.Client, ctx, r)
}

// Greedy returns a source whose watchers read all that there is, whether or not somebody wants it.
func Greedy(s listwatch.Source) listwatch.Source { return &greedySource{s} }

type greedySource struct{ listwatch.Source }

// Describe is that of the source below.
func (s *greedySource) Describe() listwatch.Description { return listwatch.Describe(s.Source) }

// Watch begins to read.
func (s *greedySource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	g := &greedyWatcher{Watcher: w, queue: make(chan listwatch.Event, 1<<16), closed: make(chan struct{})}
	go g.read()
	return g, nil
}

type greedyWatcher struct {
	listwatch.Watcher
	queue  chan listwatch.Event // as good as without bound
	closed chan struct{}
}

func (g *greedyWatcher) read() {
	var batch [64]listwatch.Event
	for {
		n, err := g.Watcher.Next(context.Background(), batch[:])
		if err != nil {
			return
		}
		for _, e := range batch[:n] {
			g.queue <- e
		}
	}
}

// Next returns the event that was read first.
func (g *greedyWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	select {
	case dst[0] = <-g.queue:
		return 1, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-g.closed:
		return 0, io.EOF
	}
}

// Close ends both halves.
func (g *greedyWatcher) Close() error {
	close(g.closed)
	return g.Watcher.Close()
}

// DialsAs is how [onDials] opens a stream.
type DialsAs = func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error)

// WithLimit dials with another limit.
func WithLimit(limit int) DialsAs {
	return func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
		more := *r
		more.Limit = limit
		return c.Dial(ctx, &more)
	}
}
