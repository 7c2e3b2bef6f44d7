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
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/transport"
)

const (
	// A bomb has 1024 blocks. Each block expands to blockBytes zeros, and all blocks together
	// expand to 1 GiB.
	blocks, blockBytes = 1 << 10, 1 << 20
	// maxMemory is the number of bytes that a client may allocate to read a bomb.
	maxMemory = 32 << 20
)

// A bomb is compressed text that expands to 1 GiB. It consists of head, followed by 1024 copies of
// block.
type bomb struct{ head, block []byte }

// deflateLast compresses parts in one stream and returns the compressed form of the last part,
// which may refer back to the earlier parts.
func deflateLast(parts ...[]byte) []byte {
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

// zeroWindow returns more zeros than the window of DEFLATE holds.
func zeroWindow() []byte { return bytes.Repeat([]byte("0"), 64<<10) }

// zeroBlock returns a compressed block of zeros. It must follow a window of zeros, because it
// refers back to them.
var zeroBlock = sync.OnceValue(func() []byte {
	return deflateLast(zeroWindow(),
		bytes.Repeat([]byte("0"), blockBytes))
})

// deflateBomb returns a DEFLATE stream that expands to the given text, followed by zeros.
func deflateBomb(beginning string) bomb {
	return bomb{deflateLast(append([]byte(beginning), zeroWindow()...)), zeroBlock()}
}

// gzipBomb returns a gzip member (RFC 1952, section 2.3) without a trailer, because the
// client must stop reading before the end.
func gzipBomb(beginning string) bomb {
	b := deflateBomb(beginning)
	b.head = append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, b.head...)
	return b
}

// zstdBomb returns a zstd frame (RFC 8878, section 3.1.1) in which each block of four bytes
// expands to 128 KiB of zeros.
func zstdBomb(beginning string) bomb {
	const raw, repeated, maxBlock = 0, 1, 128 << 10
	header := func(kind, size int) []byte {
		n := size<<3 | kind<<1
		return []byte{byte(n), byte(n >> 8), byte(n >> 16)}
	}
	const windowSize = 10 << 3 // the encoded size of a window of 1 MiB
	head := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, windowSize}, header(raw, len(beginning))...)
	head = append(head, beginning...)
	return bomb{head, bytes.Repeat(append(header(repeated, maxBlock), '0'), blockBytes/maxBlock)}
}

// bombs maps each content coding to the function that makes a bomb in that coding.
var bombs = map[string]func(beginning string) bomb{"gzip": gzipBomb, "zstd": zstdBomb}

func decompressionBomb(e *harness.Env) {
	const list = `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"5"},` +
		`"items":[{"metadata":{"name":"a"},"text":"`
	for coding, pack := range bombs {
		var accepted atomic.Bool
		at := e.Serve(watchBombHandler(e, coding, pack(eventStart), &accepted))
		took := allocatedBytes(func() {
			s, err := e.WithRoute(at).TryDial("", transport.Request{Codings: []string{coding}, Limit: smallLimit})
			switch {
			case !accepted.Load():
				e.Logf("the client does not accept %s", coding)
			case err != nil:
				e.Fatalf("1 GiB in %s: %v", coding, err)
			default:
				wantEventRejected(e, "1 GiB in "+coding, s)
			}
		})
		if took > maxMemory {
			e.Errorf("1 GiB in %s: the client allocated %d bytes of memory", coding, took)
		}

		at = e.Serve(httpBombHandler(coding, pack(list), &accepted))
		r := e.RemoteWith(at, func(r *client.Remote) { r.Compress, r.MaxObjectBytes = true, smallLimit })
		took = allocatedBytes(func() {
			if _, err := r.List(e.Context(), listwatch.Query{}); accepted.Load() && !errors.Is(err, listwatch.Corrupt) {
				e.Errorf("a list of 1 GiB in %s: got %v, want an error of code Corrupt", coding, err)
			}
		})
		if took > maxMemory {
			e.Errorf("a list of 1 GiB in %s: the client allocated %d bytes of memory", coding, took)
		}
	}
}

// watchBombHandler returns a handler that responds to a watch with a bomb. Over WebSocket
// the bomb is one message with permessage-deflate, whatever the coding. The handler sets
// accepted to true if the client accepts the compression, and to false if not.
func watchBombHandler(e *harness.Env, coding string, b bomb, accepted *atomic.Bool) http.HandlerFunc {
	if e.Transport != "ws" {
		return httpBombHandler(coding, b, accepted)
	}
	b = deflateBomb(eventStart)
	explode := e.ScriptedWithHeader(harness.ResponseHeader{
		ContentType: harness.JSONMediaType, Extra: []string{harness.WebSocketExtensions, harness.DeflateNoContext},
	}, harness.SendFrames(slices.Concat(
		[]wsframe.Frame{{First: wsframe.OpText | wsframe.RSV1, Payload: b.head}},
		slices.Repeat([]wsframe.Frame{{First: wsframe.OpContinuation, Payload: b.block}}, blocks),
	)...))
	return func(w http.ResponseWriter, r *http.Request) {
		if accepted.Store(r.Header.Get(harness.WebSocketExtensions) != ""); !accepted.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		explode(w, r)
	}
}

// httpBombHandler returns a handler that responds over HTTP with a bomb. It sets accepted as
// watchBombHandler does.
func httpBombHandler(coding string, b bomb, accepted *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if accepted.Store(strings.Contains(r.Header.Get("Accept-Encoding"), coding)); !accepted.Load() {
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

// allocatedBytes returns the number of bytes that the process allocates while f runs.
func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
