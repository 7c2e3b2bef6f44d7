package limit

import (
	"bufio"
	"strings"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/harness"
)

// A flood is what an attacker writes over and over without ever waiting for an answer; n counts from 0.
type flood struct {
	what  string
	times int
	write func(p *harness.HTTP2Conn, n uint32) error
}

// floods are those of requests that are reset at once, and of frames that want an answer (CVE-2019-9512, CVE-2019-9515).
var floods = []flood{
	{"requests that are reset at once", 10_000, func(p *harness.HTTP2Conn, n uint32) error {
		if err := p.Request(2*n+1, "watch=1"); err != nil {
			return err
		}
		return p.Framer.WriteRSTStream(2*n+1, http2.ErrCodeCancel)
	}},
	{"PING", 20_000, func(p *harness.HTTP2Conn, n uint32) error { return p.Framer.WritePing(false, [8]byte{byte(n)}) }},
	{"SETTINGS", 20_000, func(p *harness.HTTP2Conn, n uint32) error {
		return p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n})
	}},
}

// theEnd is the ping behind a flood.
var theEnd = [8]byte{'t', 'h', 'e', ' ', 'e', 'n', 'd'}

func isEnd(f http2.Frame) bool {
	ack, ok := f.(*http2.PingFrame)
	return ok && ack.IsAck() && ack.Data == theEnd
}

func h2RapidReset(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.From(start))
	for _, f := range floods {
		written, closed := flooded(e, f.times, f.write, func(p *harness.HTTP2Conn) error { return p.Framer.WritePing(false, theEnd) }, isEnd)
		e.Logf("%s: after %d the server has closed the connection: %v", f.what, written, closed)
		e.Put("a")
		s.Want("MODIFIED a")
		e.WaitForWatches(1)
	}
	alive(e)
}

// flooded has a peer write until times are over or the server has closed the connection, and a last thing then, to which the server's answer
// is isOver. It returns when that has come, or the connection was closed, and tells how often the peer wrote.
func flooded(e *harness.Env, times int, write func(p *harness.HTTP2Conn, n uint32) error, last func(p *harness.HTTP2Conn) error, isOver func(http2.Frame) bool) (written int, closed bool) {
	e.Helper()
	p := e.DialHTTP2()
	ended := make(chan bool, 1)
	go func() { ended <- drained(p, isOver) }()
	out := bufio.NewWriterSize(p.Conn, 64<<10)
	p.Framer = http2.NewFramer(out, nil)
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
func drained(p *harness.HTTP2Conn, isOver func(http2.Frame) bool) (closed bool) {
	defer p.Conn.Close()
	frames := http2.NewFramer(nil, p.Conn)
	frames.SetReuseFrames()
	for {
		f, err := frames.ReadFrame()
		if err != nil {
			return !harness.IsTimeout(err)
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

func h2ContinuationFlood(e *harness.Env) {
	const most, frame = 8 << 20, 8 << 10
	const acceptEncoding = "\x90" // a whole field in one byte, from the static table (RFC 7541, appendix A)
	long := harness.EncodeFields("x-flood", strings.Repeat("a", frame))
	for _, f := range []fieldsOf{{"long fields", long}, {"indexed ones", []byte(strings.Repeat(acceptEncoding, frame))}} {
		written, closed := flooded(e, most/frame, func(p *harness.HTTP2Conn, n uint32) error {
			if n == 0 {
				return p.Framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: e.HTTP2RequestFields("watch=1")})
			}
			return p.Framer.WriteContinuation(1, false, f.block)
		}, func(p *harness.HTTP2Conn) error { return p.Framer.WriteContinuation(1, true, nil) }, harness.IsHeadersOf(1))
		if !closed {
			e.Fatalf("%s: the server took %d frames of %d bytes and answered, want the connection closed", f.what, written, frame)
		}
	}
	alive(e)
}

// mostStreams is how many streams of one connection are tried; a server may allow more.
const mostStreams = 1000

func h2ConcurrentStreams(e *harness.Env) {
	start := e.Put("a")
	p := e.DialHTTP2()
	limit, said := p.ReadUntil(isSettings).(*http2.SettingsFrame).Value(http2.SettingMaxConcurrentStreams)
	if !said || limit > mostStreams {
		e.Skipf("the server allows %d streams a connection (said: %v), more than are tried", limit, said)
	}
	p.AwaitServer() // it has our SETTINGS
	p.OpenConnectionWindow()
	for n := range limit {
		p.Watch(2*n+1, harness.From(start))
		p.ReadUntil(harness.IsHeadersOf(2*n + 1))
	}
	p.Watch(2*limit+1, harness.From(start))
	refused := p.ReadUntil(func(f http2.Frame) bool { return harness.IsHeadersOf(2*limit+1)(f) || harness.IsResetOf(2*limit+1)(f) })
	if r, ok := refused.(*http2.RSTStreamFrame); !ok || r.ErrCode != http2.ErrCodeRefusedStream && r.ErrCode != http2.ErrCodeProtocol {
		e.Fatalf("stream %d was answered %v, want it reset with REFUSED_STREAM or PROTOCOL_ERROR: the server allows %d", 2*limit+1, refused, limit)
	}
	e.Put("a")
	p.WantEvents(1, 1)

	wired, wires := e.WithConnections()
	var all []*harness.Watch
	for range limit + 1 {
		all = append(all, wired.Dial(harness.From(start)))
	}
	if n := wires.Count(); n < 2 {
		e.Errorf("the client has %d watches on %d connection, and the server allows %d", len(all), n, limit)
	}
	for _, s := range all {
		s.Want("MODIFIED a")
	}
}

func isSettings(f http2.Frame) bool { return f.Header().Type == http2.FrameSettings }
