package loop

import (
	"bytes"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

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
	err := p.Framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:n], EndHeaders: n == len(block), EndStream: true})
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
					t.Errorf("a block of %d bytes made the server allocate %d KiB, want %d at most", len(tt.block), n>>10, tt.limit>>10)
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
		p.Must(p.Request(1, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/", "cookie", "a=1", "x", "y", "cookie", "b=2", "cookie", "c=3"))
		if c := <-got; strings.Join(c, "|") != "a=1; b=2; c=3" {
			t.Errorf("got %q, want one field", c)
		}
	})
}
