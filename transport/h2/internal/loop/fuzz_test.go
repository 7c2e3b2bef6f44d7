package loop

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// FuzzFrames sends sequences of frames to a connection that serves echoes and watches. At any time
// the windows and the streams must be within their limits, and nothing may be left when the client
// has disconnected: synctest fails if a goroutine remains.
//
// In the input, a frame is four bytes, for type, flags, stream and length, and a payload. HEADERS
// without a payload stand for a request. HEADERS with a payload of one byte stand for the request
// of a WebSocket.
func FuzzFrames(f *testing.F) {
	const get, post, data, reset, settings, window, continuation = 1, 1, 0, 3, 4, 8, 9
	f.Add([]byte{get, 5, 1, 0, window, 0, 1, 4, 0, 0, 1, 0, reset, 0, 1, 4, 0, 0, 0, 8})
	f.Add([]byte{post, 4, 3, 0, data, 0, 3, 3, 'a', 'b', 'c', data, 1, 3, 0})
	f.Add([]byte{get, 1, 1, 0, continuation, 4, 1, 0, settings, 0, 0, 6, 0, 4, 0, 0, 0, 0})
	f.Add([]byte{
		get, 5, 1, 0, get, 5, 3, 0, get, 5, 5, 0, 6, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 7, 0, 0, 8, 0, 0, 0, 0,
		0, 0, 0, 0,
	})
	f.Add([]byte{get, 5, 7, 0, window, 0, 1, 4, 0, 0, 0, 0})
	f.Add([]byte{get, 4, 1, 1, 0, data, 0, 1, 3, 'a', 'b', 'c', window, 0, 1, 4, 0, 0, 1, 0, data, 1, 1, 0})
	f.Add([]byte{get, 4, 1, 1, 0, settings, 0, 0, 6, 0, 4, 0, 0, 0, 0, data, 0, 1, 2, 'a', 'b', get, 5, 1, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) { sendFrames(t, input) })
	})
}

func sendFrames(t *testing.T, input []byte) {
	client, server := net.Pipe()
	hs := &http.Server{ErrorLog: log.New(io.Discard, "", 0), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 3}}
	c := newConn(hs, server, nil, http.HandlerFunc(echoOrWatch), Options{ExtendedConnect: true})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		new(Server).run(t.Context(), c)
	}()
	go func() { _, _ = io.Copy(io.Discard, client) }()
	framer := http2.NewFramer(client, nil)
	framer.AllowIllegalWrites = true
	err := framer.WriteSettings()
	for err == nil && len(input) >= 4 {
		kind, flags, stream, n := http2.FrameType(input[0]%12), http2.Flags(input[1]), uint32(input[2]%16),
			min(int(input[3]), len(input)-4)
		payload := input[4 : 4+n]
		input = input[4+n:]
		if kind == http2.FrameHeaders && n <= 1 {
			payload, flags = request, flags&^(http2.FlagHeadersPadded|http2.FlagHeadersPriority)
			if n == 1 {
				payload = h2peer.HeaderBlock(connectFields("websocket")...)
			}
		}
		err = framer.WriteRawFrame(kind, flags, stream, bytes.Clone(payload))
		synctest.Wait()
		c.check(t)
	}
	client.Close()
	<-ended
	<-time.After(time.Hour) // any timer that is left runs now
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams)+c.handlers.running+len(c.handlers.waiting)+len(c.sched.stalled) > 0 ||
		c.sched.blocked.head != nil || c.writer.running || c.out.buf != nil {
		t.Errorf("after the end: %d streams, %d handlers, %d requests, %d blocked streams, writer %v", len(c.streams),
			c.handlers.running, len(c.handlers.waiting), len(c.sched.stalled), c.writer.running)
	}
}

func echoOrWatch(w http.ResponseWriter, r *http.Request) {
	if h, ok := w.(http.Hijacker); ok {
		conn, _, _ := h.Hijack()
		_, _ = io.WriteString(conn, switching)
		go func() {
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}()
		return
	}
	if r.ContentLength != 0 {
		_, _ = io.Copy(w, r.Body)
		return
	}
	watch := TakeOver(w, time.Minute, true, nil)
	var step func()
	step = func() {
		if watch.Send([][]byte{make([]byte, 10000), make([]byte, 10000)}) == nil {
			// Send again once these frames have been sent, until the stream ends.
			watch.Go(step)
		}
	}
	watch.Go(step)
}

// check checks the invariants of windows, streams and handlers.
func (c *conn) check(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sched.window < 0 || c.sched.window > maxWindow || c.recv.open < 0 || c.recv.open > c.recv.limit {
		t.Errorf("the connection's windows are %d to send and %d of %d to receive", c.sched.window, c.recv.open,
			c.recv.limit)
	}
	if len(c.streams) > int(c.settings.streams) || c.handlers.running > int(c.settings.streams) {
		t.Errorf("%d streams and %d handlers, want %d at most", len(c.streams), c.handlers.running, c.settings.streams)
	}
	last := uint32(0)
	for _, st := range c.streams {
		if st.err != nil || st.window() > maxWindow || st.id <= last || st.id > c.lastID || st.id%2 == 0 {
			t.Errorf("stream %d after %d: %+v", st.id, last, st)
		}
		last = st.id
	}
	for st := range c.sched.stalled {
		if st.err != nil || st.place == placeReady || st.isOpen() {
			t.Errorf("stream %d is blocked, but it is ready or has a window: place %v, open %t, %v",
				st.id, st.place, st.isOpen(), st.err)
		}
		if st.place != placeBlocked && st.window() > 0 {
			t.Errorf("stream %d has a window, but it does not wait for the connection's window", st.id)
		}
	}
	for st := c.sched.blocked.head; st != nil; st = st.next {
		if _, ok := c.sched.stalled[st]; !ok || st.place != placeBlocked {
			t.Errorf("stream %d waits for the connection's window: stalled %t, place %v; want it blocked",
				st.id, ok, st.place)
		}
		if st.next == nil && st != c.sched.blocked.tail {
			t.Errorf("stream %d is the last that waits for the connection's window, but not the tail", st.id)
		}
	}
}

// FuzzHeaderBlock decodes a header block after another one, which may have filled HPACK's table,
// and makes a request from it. Whatever the block contains, the memory that this allocates is
// limited by the configured size of a header list and by the length of the block.
func FuzzHeaderBlock(f *testing.F) {
	f.Add([]byte{}, repeated(2_000, "cookie", "ab"))
	f.Add(repeated(1, "x", strings.Repeat("x", 3_900)), bytes.Repeat([]byte{0x80 | 62}, 1_000))
	f.Add(repeated(1, "trailer", strings.Repeat("a,", 1_000)),
		append(bytes.Clone(request), bytes.Repeat([]byte{0x80 | 62}, 500)...))
	f.Add(h2peer.HeaderBlock(":a", "", ":b", "", ":c", ""), h2peer.HeaderBlock(":path", "", ":path", "/"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		hs := &http.Server{MaxHeaderBytes: 4 << 10}
		client, server := net.Pipe()
		defer client.Close()
		c := newConn(hs, server, nil, nil, Options{ExtendedConnect: true})
		b := &c.headers
		if b.add(first, true) != nil {
			return
		}
		*b = headerBlock{decoder: b.decoder, limit: b.limit}
		before := allocated()
		if b.add(second, true) != nil {
			return
		}
		r, err := b.request(true)
		if got, limit := allocated()-before, uint64(64<<10+20*min(b.size, b.limit)+20*len(second)); got > limit {
			t.Errorf("a block of %d bytes, %d decoded, allocated %d bytes, want %d at most", len(second), b.size,
				got, limit)
		}
		if b.invalid == nil && err == nil && !b.tooLarge && r.URL == nil {
			t.Errorf("the request has no URL: %+v", r)
		}
	})
}
