package loop

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A conn is a connection. One goroutine reads it. Another one runs write while there is something
// to write. The comments of its parts say who owns them.
type conn struct {
	endpoint
	readState
	writer connio.FrameWriter // owned by the writer

	mu sync.Mutex
	// Guarded by mu.
	streams streamList
	lifecycle
	sendState
	receiveState
	handlerState
}

// An endpoint does not change after construction, except for the state of its timer.
type endpoint struct {
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
}

// A readState is owned by the reader.
type readState struct {
	in      connio.Reader
	framer  *http2.Framer
	headers headerBlock
	arrived time.Time // the time at which the bytes that are being read arrived
}

// A lifecycle records whether and how a connection ends.
type lifecycle struct {
	closing     bool // the connection closes after the output has been written
	dead        bool // the connection is closed
	goAwayState goAwayState
	timers      timers
	lastFrame   time.Time // when the last frame arrived
	inWrite     bool      // the writer waits for a write of the network connection

	states    []http.ConnState // the states to report
	reporting bool             // reportStates runs
	reports   sync.WaitGroup
}

// A sendState holds the output, and the streams that have something to send.
type sendState struct {
	out     output
	writing bool      // the writer runs
	drained sync.Cond // signals that the writer took the output, or dead
	waits   bool      // the reader waits for drained

	ready   queue
	blocked queue // the streams that wait only for the connection's window to open
	// stalled holds the streams that have had to wait because a window was empty, and have not
	// sent anything since. The value is the time at which the stream is reset if a window is still
	// empty. The zero time means never.
	stalled    map[*stream]time.Time
	sendWindow int64  // the bytes that the server may send on the connection
	peerWindow int64  // the initial window of a stream, which the client has set
	peerFrame  uint32 // the maximum size of a frame that the client accepts

	encoder *hpack.Encoder
	encoded []byte // the block that encoder writes; nil while no block is encoded
}

// A receiveState limits the frames that the client may still send.
type receiveState struct {
	lastID uint32 // the highest number of a stream that the client has opened
	recv   window // the bytes that the client may send on the connection
	cut    cutStreams
	budget budget
	// halfClosed holds the streams that the server has ended and the client has not, with the times
	// at which they are reset. They are still in streams, and their err is errClosed.
	halfClosed map[*stream]time.Time
}

// A handlerState holds the requests that wait for a handler to return.
type handlerState struct {
	handlers int         // the number of running handlers
	waiting  []*exchange // the open streams that wait for a handler to return
}

type goAwayState uint8

const (
	goAwayNone    goAwayState = iota
	goAwayWarned              // new streams are still accepted, because they may be under way
	goAwayRefused             // new streams are ignored; the connection ends with its last stream
)

// timers holds the times of the timeouts and pings of a connection, except for the times in
// conn.stalled and conn.halfClosed. One timer serves all of these times. The zero time means never.
type timers struct {
	at            time.Time // when tick runs next
	settingsAckBy time.Time // the client must have acknowledged the SETTINGS
	pingAckBy     time.Time // the client must have acknowledged the PING
	received      uint64    // the bytes that the client had received when pingAckBy was set
	refuseAt      time.Time // new streams are refused from then on
	idleSince     time.Time // when the last stream has ended; zero while there are streams
}

// isIdle reports whether the client has not opened the stream yet. After the last GOAWAY, new
// streams are ignored, but not idle: their frames may be under way (RFC 9113, section 6.8).
func (c *conn) isIdle(id uint32) bool {
	return id%2 == 0 || id > c.lastID && c.goAwayState != goAwayRefused
}

// A stream is small, because a million of them may be idle. So most of the data that only some
// streams need is behind pointers. The fields of a stream are guarded by the connection's mutex,
// except for the immutable ones.
type stream struct {
	// Immutable after construction.
	c  *conn
	id uint32

	remoteClosed bool // the client has sent END_STREAM
	place        place

	// credit is the send window minus the client's initial window size, which may change.
	credit int64
	next   *stream   // the next stream in conn.ready or conn.blocked
	step   func()    // the function to call when the stream may send; see Watch.Go
	out    *outgoing // data to send; nil if there is none
	ex     *exchange // the request that a handler is serving; nil if none is
	err    error     // the reason why nothing more can be sent; nil while the stream is open
	watchState
}

// A place is the place of a stream in the order of sending.
type place uint8

const (
	placeNone     place = iota
	placeReady          // the stream is in conn.ready
	placeBlocked        // the stream is in conn.blocked
	placeStepping       // the stream's step is running
)

// A watchState is the part of a stream that belongs to a watch.
type watchState struct {
	onDone   func()
	stall    time.Duration // the timeout for a client that opens no window; zero means no limit
	watched  bool          // the response is a watch
	detached bool          // the watch outlives its handler
	done     bool          // the watch has ended or Watch.Close was called
}

// outgoing is data that waits for other streams, for space in the output, or for a window.
type outgoing struct {
	frames [][]byte
	shared bool          // the frames no longer change
	end    bool          // END_STREAM follows
	done   chan struct{} // closed when nothing is left or the stream has failed; may be nil
}

// size returns the number of bytes that are left.
func (o *outgoing) size() int {
	n := 0
	for _, f := range o.frames {
		n += len(f)
	}
	return n
}

// window returns the number of bytes that the stream may send. It may be negative.
func (s *stream) window() int64 { return s.c.peerWindow + s.credit }

// isOpen reports whether both the stream's window and the connection's window are open.
func (s *stream) isOpen() bool { return s.window() > 0 && s.c.sendWindow > 0 }

// timeout returns the time for which the client may keep the stream's window empty; zero means no
// limit.
func (s *stream) timeout() time.Duration {
	if s.watched {
		return s.stall
	}
	return s.c.settings.stallTimeout
}

// An exchange is a request and its response, until the handler returns.
type exchange struct {
	// Immutable after construction.
	st     *stream
	req    *http.Request
	ctx    context.Context // of req, which middleware may replace; ends with the exchange
	cancel context.CancelFunc
	head   bool // the method is HEAD
	// upgrade is true if makeUpgrade has made the request.
	upgrade bool

	response response // owned by the handler

	// Guarded by the connection's mutex.
	body    body
	handler http.Handler
	progress
	readTimer  *time.Timer
	writeTimer *time.Timer
}

// A progress records the steps of an exchange.
type progress struct {
	expects  bool // the client expects 100 Continue
	started  bool // the handler has started
	headSent bool // the final status was sent
	taken    bool // the response is a Watch or a tunnel
	finished bool // the handler has returned
}

// A body is the body of a request. Its fields are guarded by the connection's mutex.
type body struct {
	ex          *exchange
	arrived     sync.Cond // signals a change of data or err
	data        []byte
	unread      int // the bytes at the end of data that were not read
	window      window
	sinceGrowth int64 // the bytes that were read since the window grew last
	declared    int64 // Content-Length, or -1
	received    int64
	trailer     http.Header
	err         error // the result of Read when no data is left; nil while more may arrive
	closed      bool
	rest
}

// A rest is the part of a body that is discarded.
type rest struct {
	discarded int64     // the bytes that were granted after close
	discardBy time.Time // when a half-closed stream is reset
}

// A response is the state of an HTTP response that the handler is writing. It belongs to the
// handler's goroutine.
type response struct {
	header   http.Header
	status   int         // zero before WriteHeader
	snapshot http.Header // a copy of the header at WriteHeader; nil after it was sent
	declared int64       // Content-Length; -1 if it is not set
	written  int64
	sent     bool // the head was sent
	buf      []byte
	trailers []string // the names in the header Trailer
	gone     chan bool
}
