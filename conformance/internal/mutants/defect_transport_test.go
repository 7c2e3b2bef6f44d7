package mutants

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

// onAccept returns a function that wraps a transport. The wrapper calls options to alter the
// options of each stream, and change to alter the accepted stream. Either function may be nil.
func onAccept(
	options func(*transport.Options), change func(*transport.Stream),
) func(transport.Server) transport.Server {
	return func(s transport.Server) transport.Server { return &interceptedServer{s, options, change} }
}

type interceptedServer struct {
	transport.Server
	options func(*transport.Options)
	change  func(*transport.Stream)
}

// Accept calls options before the wrapped Accept and change after it.
func (i *interceptedServer) Accept(
	w http.ResponseWriter, r *http.Request, o transport.Options,
) (*transport.Stream, error) {
	if i.options != nil {
		i.options(&o)
	}
	stream, err := i.Server.Accept(w, r, o)
	if err == nil && i.change != nil {
		i.change(stream)
	}
	return stream, err
}

// onSend returns a function that wraps a transport. The wrapper's streams call send to send frames.
func onSend(send func(next transport.Sender, frames [][]byte) error) func(transport.Server) transport.Server {
	return onAccept(nil, func(s *transport.Stream) { s.Sender = &interceptedSender{s.Sender, send} })
}

type interceptedSender struct {
	transport.Sender
	send func(next transport.Sender, frames [][]byte) error
}

// Send calls send with the wrapped sender.
func (i *interceptedSender) Send(frames [][]byte) error { return i.send(i.Sender, frames) }

// onClose returns a function that wraps a transport. The wrapper's streams call close when they are
// closed.
func onClose(close func(next transport.Sender, end transport.End) error) func(transport.Server) transport.Server {
	return onAccept(nil, func(s *transport.Stream) { s.Sender = &closeInterceptor{s.Sender, close} })
}

type closeInterceptor struct {
	transport.Sender
	close func(next transport.Sender, end transport.End) error
}

// Close calls close with the wrapped sender.
func (c *closeInterceptor) Close(end transport.End) error { return c.close(c.Sender, end) }

// onConns returns a function that alters a network. change wraps each new connection of that
// network.
func onConns(change func(net.Conn) net.Conn) func(transport.Network) transport.Network {
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

// A writeFilter is a connection that discards the writes for which Keep returns false.
type writeFilter struct {
	net.Conn
	Keep func(written []byte) bool
}

// NetConn returns the wrapped connection.
func (w *writeFilter) NetConn() net.Conn { return w.Conn }

// Write reports success even if it discards p.
func (w *writeFilter) Write(p []byte) (int, error) {
	if !w.Keep(p) {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

// A frameFilter is an HTTP/2 connection that drops incoming frames of one type.
type frameFilter struct {
	net.Conn
	Drop  http2.FrameType
	In    *bufio.Reader
	frame []byte // rest of a frame that Read has not returned yet
}

// frameHeaderSize is the size of an HTTP/2 frame header.
const frameHeaderSize = 9

// Read returns the bytes of the frames that are not dropped.
func (f *frameFilter) Read(p []byte) (int, error) {
	for len(f.frame) == 0 {
		head, err := f.In.Peek(frameHeaderSize)
		if err != nil {
			return 0, err
		}
		frame := make([]byte, frameHeaderSize+int(binary.BigEndian.Uint32(head)>>8))
		if _, err := io.ReadFull(f.In, frame); err != nil {
			return 0, err
		}
		if http2.FrameType(frame[3]) != f.Drop {
			f.frame = frame
		}
	}
	n := copy(p, f.frame)
	f.frame = f.frame[n:]
	return n, nil
}

// onDials returns a function that wraps a client. The wrapper calls dial to open streams.
func onDials(
	dial func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error),
) func(transport.Client) transport.Client {
	return func(c transport.Client) transport.Client { return &dialInterceptor{c, dial} }
}

type dialInterceptor struct {
	transport.Client
	dial func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error)
}

// Dial calls dial with the wrapped client.
func (d *dialInterceptor) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return d.dial(d.Client, ctx, r)
}

// unboundedBuffer returns a source whose watchers read all events ahead into a large queue.
func unboundedBuffer(s listwatch.Source) listwatch.Source { return &bufferingSource{s} }

type bufferingSource struct{ listwatch.Source }

// Describe returns the description of the wrapped source.
func (b *bufferingSource) Describe() listwatch.Description { return listwatch.Describe(b.Source) }

// Watch starts a goroutine that reads all events.
func (b *bufferingSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := b.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	g := &bufferingWatcher{Watcher: w, queue: make(chan listwatch.Event, 1<<16), closed: make(chan struct{})}
	go g.read()
	return g, nil
}

type bufferingWatcher struct {
	listwatch.Watcher
	queue  chan listwatch.Event // so large that no case fills it
	closed chan struct{}
}

func (b *bufferingWatcher) read() {
	var batch [64]listwatch.Event
	for {
		n, err := b.Watcher.Next(context.Background(), batch[:])
		if err != nil {
			return
		}
		for _, e := range batch[:n] {
			b.queue <- e
		}
	}
}

// Next returns the oldest event in the queue.
func (b *bufferingWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	select {
	case dst[0] = <-b.queue:
		return 1, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-b.closed:
		return 0, io.EOF
	}
}

// Close makes Next return io.EOF and closes the wrapped watcher.
func (b *bufferingWatcher) Close() error {
	close(b.closed)
	return b.Watcher.Close()
}

// A dialFunc opens a stream with c; see onDials.
type dialFunc = func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error)

// withLimit returns a function that dials with the given size limit for events.
func withLimit(limit int) dialFunc {
	return func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
		altered := *r
		altered.Limit = limit
		return c.Dial(ctx, &altered)
	}
}
