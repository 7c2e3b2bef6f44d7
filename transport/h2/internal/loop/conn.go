package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A conn is a connection. One goroutine reads it. Another one runs the method write while there is
// something to write.
type conn struct {
	// Immutable after construction.
	server   *Server
	hs       *http.Server
	handler  http.Handler
	settings *settings
	nc       net.Conn
	tls      *tls.ConnectionState // nil in clear text
	values   context.Context      // the parent of the requests' contexts; never cancelled
	remote   string
	timer    *time.Timer // calls tick
	// writeFunc is write. It is evaluated once, because each evaluation allocates.
	writeFunc func()

	// Owned by the reader.
	in      connio.Reader
	framer  *http2.Framer
	headers headerBlock
	arrived time.Time // the time at which the bytes that are being read arrived

	// Owned by the writer.
	writer connio.FrameWriter

	mu sync.Mutex
	// Guarded by mu.
	streams streamList
	lastID  uint32 // the highest number of a stream that the client has opened
	closing bool   // the connection closes after the output has been written
	dead    bool   // the connection is closed
	budget  budget

	out        output
	writing    bool // the writer runs
	ready      queue
	stalled    map[*stream]stall // the streams that wait for a window to open
	drained    sync.Cond         // signals that the writer took the output, or dead
	waits      bool              // the reader waits for drained
	sendWindow int64             // the bytes that the server may send on the connection
	peerWindow int64             // the initial window of a stream, which the client has set
	peerFrame  uint32            // the maximum size of a frame that the client accepts
	cut        cutStreams

	encoder     *hpack.Encoder
	encoded     []byte // the block that encoder writes; nil while no block is encoded
	recv        window // the bytes that the client may send on the connection
	handlers    int    // the number of running handlers
	waiting     []*exchange
	states      []http.ConnState // the states to report
	reporting   bool             // reportStates runs
	reports     sync.WaitGroup
	goAwayState goAwayState
	timers      timers
	lastFrame   time.Time // when the last frame arrived
}

type goAwayState uint8

const (
	goAwayNone    goAwayState = iota
	goAwayWarned              // new streams are still accepted, because they may be under way
	goAwayRefused             // new streams are ignored; the connection ends with its last stream
)

func newConn(s *Server, hs *http.Server, nc net.Conn, state *tls.ConnectionState, h http.Handler) *conn {
	c := &conn{
		server: s, hs: hs, handler: h, settings: settingsOf(s, hs), nc: nc, tls: state,
		remote: nc.RemoteAddr().String(), sendWindow: initialWindow, peerWindow: initialWindow, peerFrame: defaultFrameSize,
	}
	timeout := c.settings.writeTimeout
	if timeout == 0 {
		timeout = -1
	}
	c.writer = connio.NewFrameWriter(nc, timeout)
	c.writeFunc = c.write
	c.drained.L = &c.mu
	c.in = connio.NewReader(nc)
	c.framer = http2.NewFramer(nil, c.in)
	c.framer.SetMaxReadFrameSize(c.settings.frameSize)
	c.framer.SetReuseFrames()
	c.headers.init(c)
	c.encoder = hpack.NewEncoder(encodedWriter{c})
	c.encoder.SetMaxDynamicTableSizeLimit(c.settings.encoderTable)
	c.recv = window{limit: c.settings.connWindow, open: initialWindow}
	return c
}

// initialWindow is the size of all windows before SETTINGS and WINDOW_UPDATE (RFC 9113, section
// 6.9.2).
const initialWindow = 64<<10 - 1

// serve serves the connection until it ends. It reads on the calling goroutine.
func (c *conn) serve(ctx context.Context) {
	c.values = context.WithoutCancel(ctx)
	stop := context.AfterFunc(ctx, func() { c.nc.Close() })
	defer stop()
	shuttingDown := c.server.add(c)
	defer c.server.remove(c)
	defer c.reports.Wait() // net/http reports the end afterwards
	connio.TuneTCP(c.nc)
	c.timer = time.AfterFunc(time.Hour, c.tick)
	defer c.timer.Stop()
	_ = c.nc.SetReadDeadline(time.Now().Add(c.settings.prefaceTimeout))
	c.open(shuttingDown)
	err := c.readPreface()
	if err == nil {
		err = c.read()
	}
	c.end(err)
}

// open sends the server's preface.
func (c *conn) open(shuttingDown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.lastFrame = now
	c.budget.refilled = now
	c.timers.settingsAckBy = now.Add(c.settings.settingsTimeout)
	c.timers.idleSince = now
	c.out.settings(c.settings.frame())
	if n := c.recv.limit - c.recv.open; n > 0 {
		c.recv.open += n
		c.out.windowUpdate(0, uint32(n))
	}
	c.armAt(c.timers.settingsAckBy)
	c.armIdle()
	if shuttingDown {
		c.goAway()
	}
	c.wakeWriter()
}

// readPreface reads the client's preface. In clear text net/http has read it already.
func (c *conn) readPreface() error {
	if c.tls == nil {
		return nil
	}
	if !c.settings.acceptsCipher(c.tls) {
		return connError{http2.ErrCodeInadequateSecurity, "the cipher suite is prohibited for HTTP/2"}
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.nc, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return connError{http2.ErrCodeProtocol, "the connection preface is wrong"}
	}
	return nil
}

// A connError ends the connection with GOAWAY.
type connError struct {
	code  http2.ErrCode
	cause string
}

func (e connError) Error() string { return fmt.Sprintf("http2: %v: %s", e.code, e.cause) }

// end ends the connection after the reader has stopped because of err.
func (c *conn) end(err error) {
	goAway, ok := asConnError(err)
	c.mu.Lock()
	if ok && !c.dead {
		c.out.goAway(c.lastID, goAway.code, goAway.cause)
		if c.settings.countError != nil {
			c.settings.countError("conn_" + goAway.code.String())
		}
		c.close()
		_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
		c.mu.Unlock()
		// If the connection were closed with unread input, the client might lose the GOAWAY.
		_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
		c.mu.Lock()
	}
	c.disconnect(err)
	c.mu.Unlock()
	c.nc.Close()
}

// After its last frame, the server waits for the client to close the connection, but only for
// lingerTime and, after an error, for lingerBytes of input.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

func asConnError(err error) (connError, bool) {
	if e, ok := errors.AsType[connError](err); ok {
		return e, true
	}
	if code, ok := errors.AsType[http2.ConnectionError](err); ok {
		return connError{http2.ErrCode(code), "the client has violated the protocol"}, true
	}
	if errors.Is(err, http2.ErrFrameTooLarge) {
		return connError{http2.ErrCodeFrameSize, "the frame is larger than SETTINGS_MAX_FRAME_SIZE"}, true
	}
	return connError{}, false
}

// close closes the connection after the output has been written.
func (c *conn) close() {
	c.closing = true
	c.failStreams(errConn)
	c.wakeWriter()
}

// closeWrite closes the writing side of the connection. The reader ends when the client closes the
// connection, or after lingerTime.
func (c *conn) closeWrite() {
	_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
	connio.CloseWrite(c.nc)
}

// disconnect fails all streams at once and makes the reader stop. The reader then closes the
// network connection.
func (c *conn) disconnect(err error) {
	if c.dead {
		return
	}
	c.dead = true
	c.drained.Broadcast()
	if errors.Is(err, net.ErrClosed) || err == nil || errors.Is(err, io.EOF) {
		err = errConn
	}
	c.failStreams(err)
	c.timer.Stop()
	_ = c.nc.SetReadDeadline(connio.LongAgo) // ends the reader
}

func (c *conn) failStreams(err error) {
	for _, st := range slices.Clone(c.streams) { // fail removes the stream
		st.fail(err)
	}
}

// addStream adds the stream with the number id.
func (c *conn) addStream(id uint32) *stream {
	st := &stream{c: c, id: id}
	c.streams = append(c.streams, st)
	c.timers.idleSince = time.Time{}
	if len(c.streams) == 1 {
		c.reportState(http.StateActive)
	}
	return st
}

func (c *conn) removeStream(st *stream) {
	c.streams.remove(st)
	if len(c.streams) > 0 || c.dead || c.closing {
		return
	}
	c.streams = nil
	c.reportState(http.StateIdle)
	if c.goAwayState == goAwayRefused {
		c.close()
		return
	}
	c.timers.idleSince = time.Now()
	c.armIdle()
}

// reportState reports the state to http.Server.ConnState without the mutex, because that function
// may block. If the state changes faster than the function returns, some changes are not reported.
func (c *conn) reportState(state http.ConnState) {
	if c.hs.ConnState == nil {
		return
	}
	if len(c.states) < 2 {
		c.states = append(c.states, state)
	} else {
		c.states = c.states[:1] // active, idle, active: the first of them is enough
	}
	if !c.reporting {
		c.reporting = true
		c.reports.Go(c.reportStates)
	}
}

func (c *conn) reportStates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.states) > 0 {
		state := c.states[0]
		c.states = slices.Delete(c.states, 0, 1)
		c.mu.Unlock()
		c.hs.ConnState(c.nc, state)
		c.mu.Lock()
	}
	c.reporting = false
}

// goAway begins a graceful end. It announces that the server will refuse new streams, and sends a
// PING. The acknowledgment of the PING shows that the client has read the announcement (RFC 9113,
// section 6.8).
func (c *conn) goAway() {
	if c.goAwayState != goAwayNone || c.closing || c.dead {
		return
	}
	c.goAwayState = goAwayWarned
	c.out.goAway(1<<31-1, http2.ErrCodeNo, "")
	c.out.ping(false, goAwayPing)
	c.timers.refuseAt = time.Now().Add(goAwayTimeout)
	c.armAt(c.timers.refuseAt)
	c.wakeWriter()
}

// goAwayTimeout is the maximum time between the first GOAWAY and the refusal of new streams. It
// applies if the client does not acknowledge goAwayPing earlier.
const goAwayTimeout = time.Second

var (
	goAwayPing    = [8]byte{'g', 'o', ' ', 'a', 'w', 'a', 'y', '.'}
	keepalivePing = [8]byte{'a', 'l', 'i', 'v', 'e', '?', ' ', ' '}
)

// refuse is the second step of a graceful end: from now on, the server ignores new streams.
func (c *conn) refuse() {
	if c.goAwayState != goAwayWarned || c.closing || c.dead {
		return
	}
	c.goAwayState = goAwayRefused
	c.timers.refuseAt = time.Time{}
	c.out.goAway(c.lastID, http2.ErrCodeNo, "")
	if len(c.streams) == 0 {
		c.close()
	}
	c.wakeWriter()
}
