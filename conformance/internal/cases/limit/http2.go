package limit

import (
	"bufio"
	"strings"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/h2peer"
)

// A flood calls write repeatedly, without waiting for responses. n counts the calls from 0.
type flood struct {
	name  string
	times int
	write func(p *http2.Framer, n uint32) error
}

// floods returns three floods. The first one sends requests with the given header block, and resets
// each at once. The other two send frames that the server must acknowledge (CVE-2019-9512,
// CVE-2019-9515).
func floods(request []byte) []flood {
	return []flood{
		{"requests that are reset at once", 3000, func(p *http2.Framer, n uint32) error {
			if err := p.WriteHeaders(http2.HeadersFrameParam{
				StreamID: 2*n + 1, EndHeaders: true, EndStream: true, BlockFragment: request,
			}); err != nil {
				return err
			}
			return p.WriteRSTStream(2*n+1, http2.ErrCodeCancel)
		}},
		{"PING", 10_000, func(p *http2.Framer, n uint32) error { return p.WritePing(false, [8]byte{byte(n)}) }},
		{"SETTINGS", 10_000, func(p *http2.Framer, n uint32) error {
			return p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n})
		}},
	}
}

// lastPing is the payload of the ping that follows a flood.
var lastPing = [8]byte{'t', 'h', 'e', ' ', 'e', 'n', 'd'}

func isLastPingAck(f http2.Frame) bool {
	ack, ok := f.(*http2.PingFrame)
	return ok && ack.IsAck() && ack.Data == lastPing
}

func h2RapidReset(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.From(start))
	for _, f := range floods(e.HTTP2RequestFields("watch=1")) {
		written, closed := sendFlood(e, f.times, f.write,
			func(p *http2.Framer) error { return p.WritePing(false, lastPing) }, isLastPingAck)
		e.Logf("%s: %d sent; the server closed the connection: %v", f.name, written, closed)
		e.Put("a")
		s.Want("MODIFIED a")
		e.WaitForWatches(1)
	}
	checkAlive(e)
}

// sendFlood calls write the given number of times, or until a call fails, and then calls last. It
// waits until isLast returns true for a frame from the server, which is the response to last, or
// until the server closes the connection. written is the number of successful calls of write.
// closed reports whether the server closed the connection.
func sendFlood(
	e *harness.Env, times int, write func(p *http2.Framer, n uint32) error, last func(p *http2.Framer) error,
	isLast func(http2.Frame) bool,
) (written int, closed bool) {
	e.Helper()
	p := e.DialHTTP2()
	closedFirst := make(chan bool, 1)
	go func() { closedFirst <- readUntil(p, isLast) }()
	out := bufio.NewWriterSize(p.Conn, 64<<10)
	framer := http2.NewFramer(out, nil)
	for ; written < times; written++ {
		if err := write(framer, uint32(written)); err != nil {
			break // the server has closed the connection
		}
	}
	_ = last(framer)
	_ = out.Flush()
	return written, <-closedFirst
}

// readUntil reads frames until isLast returns true for a frame, or until reading fails, and then
// closes the connection. It reports whether the server closed the connection first. A GOAWAY counts
// as a close.
func readUntil(p *harness.HTTP2Conn, isLast func(http2.Frame) bool) (closed bool) {
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
		if isLast(f) {
			return false
		}
	}
}

// headerBlock is a named header block fragment, which a flood repeats in CONTINUATION frames.
type headerBlock struct {
	name          string
	blockFragment []byte
}

func h2ContinuationFlood(e *harness.Env) {
	const maxBytes, frameSize = 8 << 20, 8 << 10
	const acceptEncoding = "\x90" // one field in one byte (RFC 7541, appendix A)
	long := h2peer.HeaderBlock("x-flood", strings.Repeat("a", frameSize))
	for _, f := range []headerBlock{
		{"long fields", long}, {"indexed fields", []byte(strings.Repeat(acceptEncoding, frameSize))},
	} {
		written, closed := sendFlood(e, maxBytes/frameSize, func(p *http2.Framer, n uint32) error {
			if n == 0 {
				return p.WriteHeaders(http2.HeadersFrameParam{
					StreamID: 1, EndStream: true, BlockFragment: e.HTTP2RequestFields("watch=1"),
				})
			}
			return p.WriteContinuation(1, false, f.blockFragment)
		}, func(p *http2.Framer) error { return p.WriteContinuation(1, true, nil) }, h2peer.IsHeaders(1))
		if !closed {
			e.Fatalf("%s: the server accepted %d frames of %d bytes and responded, want it to close the connection",
				f.name, written, frameSize)
		}
	}
	checkAlive(e)
}

// maxTestedStreams is the highest limit on concurrent streams that h2ConcurrentStreams tests.
const maxTestedStreams = 1000

func h2ConcurrentStreams(e *harness.Env) {
	start := e.Put("a")
	p := e.DialHTTP2()
	limit, announced := p.ReadUntil(isSettings).(*http2.SettingsFrame).Value(http2.SettingMaxConcurrentStreams)
	if !announced || limit > maxTestedStreams {
		e.Skipf("the server allows %d streams per connection (announced: %v), more than this case opens", limit,
			announced)
	}
	p.AwaitServer() // returns when the server has applied the client's SETTINGS
	p.OpenConnectionWindow()
	for n := range limit {
		p.Watch(2*n+1, harness.From(start))
		p.ReadUntil(h2peer.IsHeaders(2*n + 1))
	}
	p.Watch(2*limit+1, harness.From(start))
	refused := p.ReadUntil(func(f http2.Frame) bool {
		return h2peer.IsHeaders(2*limit+1)(f) || h2peer.IsReset(2*limit+1)(f)
	})
	if r, ok := refused.(*http2.RSTStreamFrame); !ok ||
		r.ErrCode != http2.ErrCodeRefusedStream && r.ErrCode != http2.ErrCodeProtocol {
		e.Fatalf("stream %d: got %v, want a reset with REFUSED_STREAM or PROTOCOL_ERROR, because the server allows "+
			"%d streams", 2*limit+1, refused, limit)
	}
	e.Put("a")
	p.WantEvents(1, 1)

	env, conns := e.WithConnections()
	var watches []*harness.Watch
	for range limit + 1 {
		watches = append(watches, env.Dial(harness.From(start)))
	}
	if n := conns.Count(); n < 2 {
		e.Errorf("the client has %d watches on %d connections, but the server allows %d per connection", len(watches),
			n, limit)
	}
	for _, s := range watches {
		s.Want("MODIFIED a")
	}
}

func isSettings(f http2.Frame) bool { return f.Header().Type == http2.FrameSettings }
