package cases

import (
	"bufio"
	"strings"

	"golang.org/x/net/http2"
)

// A flood is what an attacker writes over and over without ever waiting for an answer; n counts from 0.
type flood struct {
	what  string
	times int
	write func(p *h2Peer, n uint32) error
}

// floods are those of requests that are reset at once, and of frames that want an answer (CVE-2019-9512, CVE-2019-9515).
var floods = []flood{
	{"requests that are reset at once", 10_000, func(p *h2Peer, n uint32) error {
		if err := p.request(2*n+1, "watch=1"); err != nil {
			return err
		}
		return p.framer.WriteRSTStream(2*n+1, http2.ErrCodeCancel)
	}},
	{"PING", 20_000, func(p *h2Peer, n uint32) error { return p.framer.WritePing(false, [8]byte{byte(n)}) }},
	{"SETTINGS", 20_000, func(p *h2Peer, n uint32) error {
		return p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n})
	}},
}

// theEnd is the ping behind a flood.
var theEnd = [8]byte{'t', 'h', 'e', ' ', 'e', 'n', 'd'}

func isEnd(f http2.Frame) bool {
	ack, ok := f.(*http2.PingFrame)
	return ok && ack.IsAck() && ack.Data == theEnd
}

func h2RapidReset(e *env) {
	start := e.put("a")
	s := e.dial(from(start))
	for _, f := range floods {
		written, closed := e.flooded(f.times, f.write, func(p *h2Peer) error { return p.framer.WritePing(false, theEnd) }, isEnd)
		e.Logf("%s: after %d the server has closed the connection: %v", f.what, written, closed)
		e.put("a")
		s.want("MODIFIED a")
		e.waitWatches(1)
	}
	e.alive()
}

// flooded has a peer write until times are over or the server has closed the connection, and a last thing then, to which the server's answer
// is isOver. It returns when that has come, or the connection was closed, and tells how often the peer wrote.
func (e *env) flooded(times int, write func(p *h2Peer, n uint32) error, last func(p *h2Peer) error, isOver func(http2.Frame) bool) (written int, closed bool) {
	e.Helper()
	p := e.h2Peer()
	ended := make(chan bool, 1)
	go func() { ended <- p.drained(isOver) }()
	out := bufio.NewWriterSize(p.conn, 64<<10)
	p.framer = http2.NewFramer(out, nil)
	for ; written < times; written++ {
		if err := write(p, uint32(written)); err != nil {
			break // the connection is closed
		}
	}
	_ = last(p)
	_ = out.Flush()
	return written, <-ended
}

// drained reads what the server sends, and closes the connection behind what isOver, a GOAWAY or an error. It reports whether the server has
// closed it.
func (p *h2Peer) drained(isOver func(http2.Frame) bool) (closed bool) {
	defer p.conn.Close()
	frames := http2.NewFramer(nil, p.conn)
	frames.SetReuseFrames()
	for {
		f, err := frames.ReadFrame()
		if err != nil {
			return !isTimeout(err)
		}
		if f.Header().Type == http2.FrameGoAway {
			return true
		}
		if isOver(f) {
			return false
		}
	}
}

// A block of fields is what CONTINUATION brings, over and over.
type fieldsOf struct {
	what  string
	block []byte
}

func h2ContinuationFlood(e *env) {
	const most, frame = 8 << 20, 8 << 10
	const acceptEncoding = "\x90" // a whole field in one byte, from the static table (RFC 7541, appendix A)
	long := fieldBlock("x-flood", strings.Repeat("a", frame))
	for _, f := range []fieldsOf{{"long fields", long}, {"indexed ones", []byte(strings.Repeat(acceptEncoding, frame))}} {
		written, closed := e.flooded(most/frame, func(p *h2Peer, n uint32) error {
			if n == 0 {
				return p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: e.h2Request("watch=1")})
			}
			return p.framer.WriteContinuation(1, false, f.block)
		}, func(p *h2Peer) error { return p.framer.WriteContinuation(1, true, nil) }, isHeadersOf(1))
		if !closed {
			e.Fatalf("%s: the server took %d frames of %d bytes and answered, want the connection closed", f.what, written, frame)
		}
	}
	e.alive()
}

// mostStreams is how many streams of one connection are tried; a server may allow more.
const mostStreams = 1000

func h2ConcurrentStreams(e *env) {
	start := e.put("a")
	p := e.h2Peer()
	limit, said := p.until(isSettings).(*http2.SettingsFrame).Value(http2.SettingMaxConcurrentStreams)
	if !said || limit > mostStreams {
		e.Skipf("the server allows %d streams a connection (said: %v), more than are tried", limit, said)
	}
	p.barrier() // it has our SETTINGS
	p.widen()
	for n := range limit {
		p.watch(2*n+1, from(start))
		p.until(isHeadersOf(2*n + 1))
	}
	p.watch(2*limit+1, from(start))
	refused := p.until(func(f http2.Frame) bool { return isHeadersOf(2*limit+1)(f) || isResetOf(2*limit+1)(f) })
	if r, ok := refused.(*http2.RSTStreamFrame); !ok || r.ErrCode != http2.ErrCodeRefusedStream && r.ErrCode != http2.ErrCodeProtocol {
		e.Fatalf("stream %d was answered %v, want it reset with REFUSED_STREAM or PROTOCOL_ERROR: the server allows %d", 2*limit+1, refused, limit)
	}
	e.put("a")
	p.wantEvents(1, 1)

	wired, wires := e.wired()
	var all []*stream
	for range limit + 1 {
		all = append(all, wired.dial(from(start)))
	}
	if n := wires.count(); n < 2 {
		e.Errorf("the client has %d watches on %d connection, and the server allows %d", len(all), n, limit)
	}
	for _, s := range all {
		s.want("MODIFIED a")
	}
}

func isSettings(f http2.Frame) bool { return f.Header().Type == http2.FrameSettings }
