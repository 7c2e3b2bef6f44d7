package loop

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// repeated returns a header block with a field of HPACK's table that is referred to n times.
func repeated(n int, name, value string) []byte {
	block := append(bytes.Clone(request), h2peer.HeaderBlock(name, value)...)
	return append(block, bytes.Repeat([]byte{0x80 | 62}, n-1)...)
}

// writeBlock writes a header block as HEADERS and CONTINUATION.
func writeBlock(p *h2peer.Peer, id uint32, block []byte) error {
	n := min(len(block), 16<<10)
	err := p.Framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: block[:n],
		EndHeaders: n == len(block), EndStream: true,
	})
	for block = block[n:]; err == nil && len(block) > 0; block = block[n:] {
		n = min(len(block), 16<<10)
		err = p.Framer.WriteContinuation(id, n == len(block), block[:n])
	}
	return err
}

// A header block must cost time and memory in proportion to its length, whatever it contains.
func TestHeaderBlocksAllocateLittle(t *testing.T) {
	var unknown []string
	for i := range 28_000 {
		unknown = append(unknown, ":"+strconv.Itoa(i), "")
	}
	tests := []struct {
		name  string
		block []byte
		limit uint64 // bytes
	}{
		{"crumbs of cookies", repeated(14_000, "cookie", "ab"), 8 << 20},
		{"unknown pseudo-headers", append(h2peer.HeaderBlock(unknown...), request...), 4 << 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, func(http.ResponseWriter, *http.Request) {}, false)
				p := h2peer.Client(t, f.dial(t))
				synctest.Wait()
				before := allocated()
				p.Must(writeBlock(p, 1, tt.block))
				p.ReadUntil(func(f http2.Frame) bool { return f.Header().StreamID == 1 })
				if n := allocated() - before; n > tt.limit {
					t.Errorf("a block of %d bytes made the server allocate %d KiB, want %d at most", len(tt.block),
						n>>10, tt.limit>>10)
				}
			})
		})
	}
}

// allocated returns the bytes that were allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestCookieCrumbsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan []string, 1)
		f := start(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header["Cookie"] }, false)
		p := h2peer.Client(t, f.dial(t))
		p.Must(p.Request(1, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/", "cookie", "a=1", "x",
			"y", "cookie", "b=2", "cookie", "c=3"))
		if c := <-got; strings.Join(c, "|") != "a=1; b=2; c=3" {
			t.Errorf("got %q, want one field", c)
		}
	})
}

func TestMalformedRequestsAreReset(t *testing.T) {
	requests := map[string][]string{
		"a second authority": {
			":method", "GET", ":scheme", "http", ":authority", "", ":authority", "h",
			":path", "/",
		},
		"a second path": {
			":method", "GET", ":scheme", "http", ":authority", "h", ":path", "",
			":path", "/",
		},
		"an unknown pseudo-header": {
			":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/",
			":x", "y",
		},
		"a pseudo-header after field": {":method", "GET", ":scheme", "http", ":authority", "h", "x", "y", ":path", "/"},
		"userinfo in :authority":      {":method", "GET", ":scheme", "http", ":authority", "user@h", ":path", "/"},
		"a path in :authority":        {":method", "GET", ":scheme", "http", ":authority", "h/x", ":path", "/"},
		"userinfo in Host":            {":method", "GET", ":scheme", "http", "host", "user@h", ":path", "/"},
		"a space in Host":             {":method", "GET", ":scheme", "http", "host", "a b", ":path", "/"},
	}
	for name, fields := range requests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the handler got %+v", r) },
					false)
				p := h2peer.Client(t, f.dial(t))
				p.Must(p.Request(1, fields...))
				if r := p.ReadUntil(
					func(f http2.Frame) bool {
						return f.Header().StreamID == 1
					}); !h2peer.Is[*http2.RSTStreamFrame](r) {
					t.Errorf("got %v, want RST_STREAM", r)
				}
			})
		})
	}
}

func TestTrailersBeyondTheLimitFailTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error, 1)
		f := start(t, func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			result <- err
		}, false, func(hs *http.Server) { hs.MaxHeaderBytes = 8 << 10 })
		p := h2peer.Client(t, f.dial(t))
		p.Must(post(p, 1))
		synctest.Wait() // the handler has started
		p.Must(writeBlock(p, 1, h2peer.HeaderBlock("sum", strings.Repeat("!", 13<<10))))
		p.ReadUntil(h2peer.IsReset(1))
		if err := <-result; err == nil {
			t.Error("the handler read a complete body")
		}
	})
}

func TestAnnouncedTrailersAreLimited(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, "t"+strconv.Itoa(i))
	}
	long := strings.Join(names, ",")
	r := &http.Request{Header: http.Header{}}
	var fields []hpack.HeaderField
	for range 100 {
		fields = append(fields, hpack.HeaderField{Name: "trailer", Value: long})
	}
	before := allocated()
	if err := setFields(r, fields); err != nil {
		t.Fatal(err)
	}
	if n := allocated() - before; len(r.Trailer) != maxTrailers || n > 100<<10 {
		t.Errorf("got %d trailers and %d KiB, want %d and 100 at most", len(r.Trailer), n>>10, maxTrailers)
	}
}
