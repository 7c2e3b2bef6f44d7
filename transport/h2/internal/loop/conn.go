package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A conn is a connection. One goroutine reads it. Another one runs write while there is something
// to write.
type conn struct {
	// Immutable after construction.
	hs       *http.Server
	handler  http.Handler
	settings *settings
	nc       net.Conn
	tls      *tls.ConnectionState // nil in clear text
	remote   string
	values   context.Context // the parent of the requests' contexts; never cancelled
	reports  stateReporter   // has a mutex of its own

	// Owned by the reader.
	frames  frameReader
	headers headerBlock

	mu sync.Mutex
	// Guarded by mu.
	phase      phase
	streams    streamList
	lastID     uint32 // the highest number of a stream that the client has opened
	handlers   handlerLimit
	budget     budget
	timers     timers
	recv       window // the bytes that the client may send on the connection
	cut        cutStreams
	halfClosed deadlines // see stream.awaitEnd
	out        output
	writer     writer
	sched      scheduler
	encoder    headerEncoder
}

// A phase is a step in the life of a connection. Phases only advance.
type phase uint8

const (
	phaseOpen    phase = iota
	phaseWarned        // a GOAWAY was sent; new streams are accepted, because they may be under way
	phaseRefuses       // new streams are ignored; the connection ends with its last stream
	phaseCloses        // the connection closes after the output has been written
	phaseDead          // the connection is closed
)

func newConn(hs *http.Server, nc net.Conn, state *tls.ConnectionState, h http.Handler, o Options) *conn {
	c := &conn{
		hs: hs, handler: h, settings: settingsOf(hs, o), nc: nc, tls: state,
		remote: nc.RemoteAddr().String(),
	}
	if report := hs.ConnState; report != nil {
		c.reports.report = func(state http.ConnState) { report(nc, state) }
	}
	c.frames.init(nc, c.settings.frameSize)
	c.headers.init(c.settings.headerBytes)
	c.handlers.limit = int(c.settings.streams)
	c.recv = window{limit: c.settings.connWindow, open: initialWindow}
	c.writer.init(c)
	c.sched = scheduler{window: initialWindow, streamWindow: initialWindow, frameSize: defaultFrameSize}
	c.encoder.init(c.settings.encoderTable)
	return c
}

// open sends the server's preface.
func (c *conn) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.timers.start(now, c.tick)
	c.budget.refilled = now
	c.timers.settingsAckBy = now.Add(c.settings.settingsTimeout)
	c.out.settings(c.settings.frame())
	if n := c.recv.limit - c.recv.open; n > 0 {
		c.recv.open += n
		c.out.windowUpdate(0, uint32(n))
	}
	c.arm(c.timers.settingsAckBy)
	c.armIdle()
	c.wakeWriter()
}

// serve serves the connection until it ends. It reads on the calling goroutine.
func (c *conn) serve(ctx context.Context) {
	c.values = context.WithoutCancel(ctx)
	stop := context.AfterFunc(ctx, func() { c.nc.Close() })
	defer stop()
	defer c.timers.stop()
	defer c.reports.wait() // net/http reports the end afterwards
	connio.TuneTCP(c.nc)
	err := c.readPreface()
	if err == nil {
		err = c.read()
	}
	c.end(err)
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

// isIdle reports whether the client has not opened the stream yet. After the last GOAWAY, new
// streams are ignored, but not idle: their frames may be under way (RFC 9113, section 6.8).
func (c *conn) isIdle(id uint32) bool {
	return id%2 == 0 || id > c.lastID && c.phase < phaseRefuses
}

// addStream adds the stream with the number id.
func (c *conn) addStream(id uint32) *stream {
	st := &stream{c: c, id: id}
	c.streams = append(c.streams, st)
	c.timers.idleSince = time.Time{}
	if len(c.streams) == 1 {
		c.reports.add(http.StateActive)
	}
	return st
}

func (c *conn) removeStream(st *stream) {
	c.streams.remove(st)
	if len(c.streams) > 0 || c.phase >= phaseCloses {
		return
	}
	c.streams = nil
	c.reports.add(http.StateIdle)
	if c.phase == phaseRefuses {
		c.close()
		return
	}
	c.timers.idleSince = time.Now()
	c.armIdle()
}

// streamError resets a stream because of what the client has sent.
func (c *conn) streamError(id uint32, code http2.ErrCode) error {
	if st := c.streams.find(id); st != nil {
		st.terminate(code, errMalformed)
	} else {
		c.out.reset(id, code)
		c.wakeWriter()
	}
	return c.budget.charge(costFrame)
}

// grant opens the connection's window again for n bytes that were consumed.
func (c *conn) grant(n int32) {
	if inc := c.recv.consume(n); inc > 0 {
		c.out.windowUpdate(0, uint32(inc))
		c.wakeWriter()
	}
}

// goAway begins a graceful end. It announces that the server will refuse new streams, and sends a
// PING. The acknowledgment of the PING shows that the client has read the announcement (RFC 9113,
// section 6.8).
func (c *conn) goAway() {
	if c.phase != phaseOpen {
		return
	}
	c.phase = phaseWarned
	c.out.goAway(1<<31-1, http2.ErrCodeNo, "")
	c.out.ping(false, goAwayPing)
	c.timers.refuseAt = time.Now().Add(goAwayTimeout)
	c.arm(c.timers.refuseAt)
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
	if c.phase != phaseWarned {
		return
	}
	c.phase = phaseRefuses
	c.timers.refuseAt = time.Time{}
	c.out.goAway(c.lastID, http2.ErrCodeNo, "")
	if len(c.streams) == 0 {
		c.close()
	}
	c.wakeWriter()
}

// close closes the connection after the output has been written.
func (c *conn) close() {
	c.phase = max(c.phase, phaseCloses)
	c.failStreams(errConn)
	c.wakeWriter()
}

func (c *conn) failStreams(err error) {
	for _, st := range slices.Clone(c.streams) { // fail removes the stream
		st.fail(err)
	}
}

// After its last frame, the server waits at most lingerTime for the client to close the
// connection. After an error, it also stops waiting once it has discarded lingerBytes of input.
const (
	lingerTime  = connio.LingerTime
	lingerBytes = connio.LingerBytes
)

// closeWrite closes the writing side of the connection. The reader ends when the client closes the
// connection, or after lingerTime.
func (c *conn) closeWrite() {
	_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
	connio.CloseWrite(c.nc)
}

// disconnect fails all streams at once and makes the reader stop. The reader then closes the
// network connection.
func (c *conn) disconnect(err error) {
	if c.phase == phaseDead {
		return
	}
	c.phase = phaseDead
	c.writer.drained.Broadcast()
	if errors.Is(err, net.ErrClosed) || err == nil || errors.Is(err, io.EOF) {
		err = errConn
	}
	c.failStreams(err)
	c.timers.stop()
	_ = c.nc.SetReadDeadline(connio.LongAgo) // ends the reader
}

// end ends the connection after the reader has stopped because of err.
func (c *conn) end(err error) {
	goAway, ok := asConnError(err)
	c.mu.Lock()
	if ok && c.phase != phaseDead {
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

func (c *conn) logf(format string, args ...any) {
	if c.hs.ErrorLog != nil {
		c.hs.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}
