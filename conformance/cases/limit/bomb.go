package limit

import (
	"bytes"
	"compress/flate"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/wsframe"
	"github.com/listwatch/listwatch/transport"
)

const (
	// A bomb has blocks of blockBytes zeros each, 1 GiB in total.
	blocks, blockBytes = 1 << 10, 1 << 20
	// mostMemory is the number of bytes that a client may allocate to read a bomb.
	mostMemory = 32 << 20
)

// A bomb is 1 GiB of compressed text. It consists of head, followed by block repeated
// blocks times.
type bomb struct{ head, block []byte }

// deflated compresses parts in one stream and returns the compressed form of the last part,
// which may refer back to the earlier parts.
func deflated(parts ...[]byte) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		panic(err) // only an invalid level is an error
	}
	for _, p := range parts {
		out.Reset()
		_, _ = w.Write(p) // writes to a bytes.Buffer do not fail
		_ = w.Flush()
	}
	return out.Bytes()
}

// window returns more zeros than the window of DEFLATE holds.
func window() []byte { return bytes.Repeat([]byte("0"), 64<<10) }

// zeros returns a compressed block of zeros that must follow a window of zeros.
var zeros = sync.OnceValue(func() []byte { return deflated(window(), bytes.Repeat([]byte("0"), blockBytes)) })

// deflateBomb returns a DEFLATE stream of beginning, followed by zeros.
func deflateBomb(beginning string) bomb {
	return bomb{deflated(append([]byte(beginning), window()...)), zeros()}
}

// gzipBomb returns a gzip member (RFC 1952, section 2.3) without a trailer, because the
// client must stop reading before it gets there.
func gzipBomb(beginning string) bomb {
	b := deflateBomb(beginning)
	b.head = append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, b.head...)
	return b
}

// zstdBomb returns a zstd frame (RFC 8878, section 3.1.1) in which each block of four bytes
// expands to 128 KiB of zeros.
func zstdBomb(beginning string) bomb {
	const raw, repeated, most = 0, 1, 128 << 10
	header := func(kind, size int) []byte {
		n := size<<3 | kind<<1
		return []byte{byte(n), byte(n >> 8), byte(n >> 16)}
	}
	const windowSize = 10 << 3 // 1 MiB
	head := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, windowSize}, header(raw, len(beginning))...)
	head = append(head, beginning...)
	return bomb{head, bytes.Repeat(append(header(repeated, most), '0'), blockBytes/most)}
}

// bombs has the function that makes a bomb, by content coding.
var bombs = map[string]func(beginning string) bomb{"gzip": gzipBomb, "zstd": zstdBomb}

func bombed(e *harness.Env) {
	const list = `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"},"text":"`
	for coding, pack := range bombs {
		var asked atomic.Bool
		at := e.Serve(explodes(e, coding, pack(endless), &asked))
		took := allocated(func() {
			s, err := e.Via(at).TryDial("", transport.Request{Codings: []string{coding}, Limit: smallLimit})
			switch {
			case !asked.Load():
				e.Logf("the client does not accept %s", coding)
			case err != nil:
				e.Fatalf("1 GiB in %s: %v", coding, err)
			default:
				refusedEvent(e, "1 GiB in "+coding, s)
			}
		})
		if took > mostMemory {
			e.Errorf("1 GiB in %s: the client allocated %d bytes of memory", coding, took)
		}

		at = e.Serve(shatters(coding, pack(list), &asked))
		r := e.RemoteWith(at, func(r *client.Remote) { r.Compress, r.MaxObjectBytes = true, smallLimit })
		took = allocated(func() {
			if _, err := r.List(e.Context(), listwatch.Query{}); asked.Load() && !errors.Is(err, listwatch.Corrupt) {
				e.Errorf("a list of 1 GiB in %s: got %v, want an error of code Corrupt", coding, err)
			}
		})
		if took > mostMemory {
			e.Errorf("a list of 1 GiB in %s: the client allocated %d bytes of memory", coding, took)
		}
	}
}

// explodes returns a handler that responds to a watch with a bomb. Over WebSocket the bomb
// is one message with permessage-deflate, whatever the coding. The handler sets asked to
// true if the client accepts the compression, and to false if not.
func explodes(e *harness.Env, coding string, b bomb, asked *atomic.Bool) http.HandlerFunc {
	if e.Transport != "ws" {
		return shatters(coding, b, asked)
	}
	b = deflateBomb(endless)
	explode := e.ScriptedWithHeader(harness.ResponseHeader{ContentType: harness.JSONMediaType, Extra: []string{harness.WebSocketExtensions, harness.DeflateNoContext}}, harness.SendFrames(slices.Concat(
		[]wsframe.Frame{{First: wsframe.OpText | wsframe.RSV1, Payload: b.head}},
		slices.Repeat([]wsframe.Frame{{First: wsframe.OpContinuation, Payload: b.block}}, blocks),
	)...))
	return func(w http.ResponseWriter, r *http.Request) {
		if asked.Store(r.Header.Get(harness.WebSocketExtensions) != ""); !asked.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		explode(w, r)
	}
}

// shatters returns a handler that responds over HTTP with a bomb. It sets asked like
// explodes does.
func shatters(coding string, b bomb, asked *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if asked.Store(strings.Contains(r.Header.Get("Accept-Encoding"), coding)); !asked.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", harness.JSONMediaType)
		w.Header().Set("Content-Encoding", coding)
		_, _ = w.Write(b.head)
		for range blocks {
			if _, err := w.Write(b.block); err != nil {
				return // the client has closed the connection
			}
		}
	}
}

// allocated returns the number of bytes that the process allocates while f runs.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
