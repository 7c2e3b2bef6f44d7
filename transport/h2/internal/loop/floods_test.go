package loop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// flood calls send until the server closes the connection or n frames were sent. It returns the
// number of frames that the server has read, the maximum memory that the server held, and the code
// of its GOAWAY.
func flood(t *testing.T, handler http.HandlerFunc, n int, send func(f *http2.Framer, i int) error) (read, held int64,
	code http2.ErrCode,
) {
	t.Helper()
	before := memoryInUse()
	f := start(t, handler, false)
	conn := f.dial(t)
	framer := http2.NewFramer(conn, conn)
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan http2.ErrCode, 1)
	go func() {
		code := http2.ErrCodeNo
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				ended <- code
				return
			}
			if g, ok := frame.(*http2.GoAwayFrame); ok {
				code = g.ErrCode
			}
		}
	}()
	for i := range n {
		if send(framer, i) != nil {
			break
		}
		synctest.Wait() // the server has read the frame, so the count does not depend on buffers
		read++
		if read&(read-1) == 0 || read%250 == 0 {
			held = max(held, memoryInUse()-before)
		}
		select {
		case code := <-ended:
			return read, held, code
		default:
		}
		f.loop.mu.Lock()
		closing := len(f.loop.conns) == 0
		for c := range f.loop.conns {
			c.mu.Lock()
			closing = closing || c.phase >= phaseCloses
			c.mu.Unlock()
		}
		f.loop.mu.Unlock()
		if closing {
			break
		}
	}
	conn.Close()
	return read, held, <-ended
}

// memoryInUse returns the bytes of reachable objects and of stacks, without the values in a
// sync.Pool. It takes two garbage collections to free these, because the first one only moves them
// to the victim cache of the pool.
func memoryInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// request is a header block for a small request.
var request = h2peer.HeaderBlock(":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/")

func headers(f *http2.Framer, i int, end bool) error {
	return f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: uint32(2*i + 1), BlockFragment: request, EndHeaders: true,
		EndStream: end,
	})
}

// floodMemory is a bound on the memory that a flood can make a connection hold: a header block of
// the largest size, or defaultStreams handlers.
const floodMemory = 2 << 20

func TestFloodsEndTheConnection(t *testing.T) {
	big := bytes.Repeat([]byte{'x'}, 3900)
	// HPACK sends this character without Huffman coding, because its Huffman code is longer than 8
	// bits.
	kilobyte := h2peer.HeaderBlock("x", string(bytes.Repeat([]byte{'!'}, 1000)))
	tests := []struct {
		name string
		// limit is the maximum number of frames, or of pairs of frames, until the connection ends.
		limit int64
		send  func(f *http2.Framer, i int) error
	}{
		{"rapid reset (CVE-2023-44487)", budgetSize + 1, func(f *http2.Framer, i int) error {
			headers(f, i, true)
			return f.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel)
		}},
		{"MadeYouReset (CVE-2025-8671)", budgetSize + 1, func(f *http2.Framer, i int) error {
			headers(f, i, true)
			return f.WriteWindowUpdate(uint32(2*i+1), 1<<31-1) // overflows, so the server resets
		}},
		{"CONTINUATION, empty", budgetSize + freeContinuations + 2, func(f *http2.Framer, i int) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: request})
			}
			return f.WriteContinuation(1, false, nil)
		}},
		{"CONTINUATION of one KiB", budgetSize + freeContinuations + 2, func(f *http2.Framer, i int) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: request})
			}
			return f.WriteContinuation(1, false, kilobyte)
		}},
		{"CONTINUATION of one byte", budgetSize + freeContinuations + 2, func(f *http2.Framer, i int) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: request})
			}
			return f.WriteContinuation(1, false, kilobyte[(i-1)%len(kilobyte):][:1])
		}},
		{"SETTINGS", budgetSize/costSettings + 1, func(f *http2.Framer, _ int) error { return f.WriteSettings() }},
		{"PING", budgetSize + 1, func(f *http2.Framer, _ int) error { return f.WritePing(false, [8]byte{}) }},
		{"PRIORITY", budgetSize + 101, func(f *http2.Framer, _ int) error {
			return f.WritePriority(1, http2.PriorityParam{StreamDep: 3})
		}},
		{"empty DATA", budgetSize + 2, func(f *http2.Framer, i int) error {
			if i == 0 {
				return headers(f, 0, false)
			}
			return f.WriteData(1, false, nil)
		}},
		{
			"WINDOW_UPDATE of one byte", budgetSize + 101,
			func(f *http2.Framer, _ int) error { return f.WriteWindowUpdate(0, 1) },
		},
		{
			"unknown frames", budgetSize + 1,
			func(f *http2.Framer, _ int) error { return f.WriteRawFrame(0xfa, 0, 0, nil) },
		},
		{"HPACK bombs", 4, func(f *http2.Framer, i int) error {
			// One field fills the table, and 4,000 bytes refer to it.
			block := request
			if i == 0 {
				block = append(bytes.Clone(request), h2peer.HeaderBlock("x", string(big))...)
			}
			block = append(bytes.Clone(block), bytes.Repeat([]byte{0x80 | 62}, 4000)...)
			return f.WriteHeaders(http2.HeadersFrameParam{
				StreamID: uint32(2*i + 1), BlockFragment: block,
				EndHeaders: true, EndStream: true,
			})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, peak atomic.Int64
				handler := func(_ http.ResponseWriter, r *http.Request) {
					if n := running.Add(1); n > peak.Load() {
						peak.Store(n)
					}
					defer running.Add(-1)
					<-r.Context().Done()
				}
				read, held, code := flood(t, handler, 20*budgetSize, tt.send)
				if code != http2.ErrCodeEnhanceYourCalm || read > tt.limit {
					t.Errorf("the connection ended with %v after %d, want ENHANCE_YOUR_CALM after %d at most", code,
						read, tt.limit)
				}
				if held > floodMemory {
					t.Errorf("the server held %d KiB, want %d at most", held>>10, floodMemory>>10)
				}
				if peak.Load() > defaultStreams {
					t.Errorf("%d handlers ran at once, want %d at most", peak.Load(), defaultStreams)
				}
			})
		})
	}
}

// A client that opens exhausted windows byte by byte makes the server write a frame for each byte.
func TestTinyWindowsEndTheConnection(t *testing.T) {
	const streams = 8
	tests := map[string]func(f *http2.Framer, i int) error{
		"of the connection": func(f *http2.Framer, i int) error {
			if i == 0 {
				return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
			}
			return f.WriteWindowUpdate(0, 1)
		},
		"of streams": func(f *http2.Framer, i int) error {
			if i == 0 {
				return f.WriteWindowUpdate(0, 1<<20)
			}
			return f.WriteWindowUpdate(uint32(2*(i%streams)+1), 1)
		},
	}
	for name, send := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				response := make([]byte, 100<<10)
				handler := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(response) }
				read, _, code := flood(t, handler, 20*budgetSize, func(f *http2.Framer, i int) error {
					err := send(f, i)
					for s := 0; i == 0 && err == nil && s < streams; s++ {
						err = headers(f, s, true)
					}
					return err
				})
				// The streams, and the bytes that filled the first windows, explain some frames.
				limit := budgetSize + streams*(framesPerStream+64<<10/bytesPerFrame+8*framesPerData)
				if code != http2.ErrCodeEnhanceYourCalm || read > int64(limit) {
					t.Errorf("the connection ended with %v after %d, want ENHANCE_YOUR_CALM after %d at most", code,
						read, limit)
				}
			})
		})
	}
}

// Handlers that ignore the reset of their stream must not accumulate.
func TestHandlersOfResetStreamsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var started atomic.Int64
		handler := func(http.ResponseWriter, *http.Request) {
			started.Add(1)
			<-release
		}
		flood(t, handler, 2*budgetSize, func(f *http2.Framer, i int) error {
			headers(f, i, true)
			synctest.Wait() // the handler runs now, if the server permits it
			return f.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel)
		})
		if n := started.Load(); n != defaultStreams {
			t.Errorf("%d handlers were started, want %d", n, defaultStreams)
		}
		close(release)
	})
}

func TestResetStreamsCallNoHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		f := start(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) }, false)
		client := f.dial(t)
		defer client.Close()
		framer := http2.NewFramer(client, client)
		if _, err := client.Write([]byte(http2.ClientPreface)); err != nil {
			t.Fatal(err)
		}
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.loop.mu.Lock()
		defer f.loop.mu.Unlock()
		for c := range f.loop.conns {
			// Hold mu, as a reader does that receives HEADERS and RST_STREAM before the handler
			// starts.
			c.mu.Lock()
			st := c.addStream(1)
			c.handlers.start(newExchange(st, httptest.NewRequest("GET", "/", nil), &headerBlock{end: true}))
			st.fail(errors.New("reset"))
			c.mu.Unlock()
		}
		synctest.Wait()
		if n := calls.Load(); n != 0 {
			t.Errorf("got %d calls, want none", n)
		}
	})
}

// A client that does not read its responses must not make the server keep them.
func TestUnreadResponsesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		f := start(t, func(w http.ResponseWriter, _ *http.Request) {
			// Each value differs, because HPACK would replace a repeated one by a byte.
			w.Header().Set("X", strings.Repeat("!", 1<<10)+strconv.FormatInt(n.Add(1), 10))
		}, false)
		conn := f.dial(t)
		fmt.Fprint(conn, http2.ClientPreface)
		before := memoryInUse()
		go func() { // ends when the server closes the connection
			framer := http2.NewFramer(conn, nil)
			_ = framer.WriteSettings()
			for i := 0; headers(framer, i, true) == nil && i < 12_000; i++ {
			}
		}()
		synctest.Wait()
		if held := memoryInUse() - before; held > 2<<20 {
			t.Errorf("the server held %d KiB of responses, want 2048 at most", held>>10)
		}
	})
}

// Streams that wait for a handler must leave nothing behind when they are reset.
func TestStreamsThatWaitAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		finish := sync.OnceFunc(func() { close(release) })
		defer finish()
		f := start(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				<-release // ignores its context
			}
			io.Copy(io.Discard, r.Body)
		}, false)
		p := h2peer.Client(t, f.dial(t))
		id := uint32(1)
		for ; id < 2*defaultStreams; id += 2 {
			p.Must(headers(p.Framer, int(id/2), true))
			synctest.Wait() // the handler runs
			p.Must(p.Framer.WriteRSTStream(id, http2.ErrCodeCancel))
		}
		before := memoryInUse()
		for range 100 {
			p.Must(post(p, id))
			for range 4 { // together more than the connection's window
				p.Must(p.Framer.WriteData(id, false, make([]byte, 15<<10)))
			}
			p.Must(p.Framer.WriteRSTStream(id, http2.ErrCodeCancel))
			synctest.Wait() // the server opens the window again
			id += 2
		}
		if held := memoryInUse() - before; held > 256<<10 {
			t.Errorf("100 streams that were reset before their handlers started hold %d KiB, want 256 at most",
				held>>10)
		}
		finish()
		synctest.Wait()
		p.Must(p.Request(id, ":method", "PUT", ":scheme", "http", ":authority", "h", ":path", "/"))
		p.ReadUntil(h2peer.IsHeaders(id))
	})
}
