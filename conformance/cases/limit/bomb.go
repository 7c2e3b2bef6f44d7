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
	// blocks of blockBytes zeros each are 1 GiB.
	blocks, blockBytes = 1 << 10, 1 << 20
	// mostMemory is what a client may take for a bomb.
	mostMemory = 32 << 20
)

// A bomb is text of 1 GiB, compressed: head, and then block as often as there are blocks.
type bomb struct{ head, block []byte }

// deflated compresses parts one behind another and returns what the last one becomes, which may refer to those before.
func deflated(parts ...[]byte) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		panic(err) // of the level, which is a constant
	}
	for _, p := range parts {
		out.Reset()
		_, _ = w.Write(p) // a Buffer takes everything
		_ = w.Flush()
	}
	return out.Bytes()
}

// window are zeros, more than DEFLATE looks back at.
func window() []byte { return bytes.Repeat([]byte("0"), 64<<10) }

// zeros is a block behind a window.
var zeros = sync.OnceValue(func() []byte { return deflated(window(), bytes.Repeat([]byte("0"), blockBytes)) })

// deflateBomb compresses a beginning and zeros behind it.
func deflateBomb(beginning string) bomb {
	return bomb{deflated(append([]byte(beginning), window()...)), zeros()}
}

// gzipBomb has the header of a member, of which nobody sees the end (RFC 1952 2.3).
func gzipBomb(beginning string) bomb {
	b := deflateBomb(beginning)
	b.head = append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, b.head...)
	return b
}

// zstdBomb is a frame of which each block says, in four bytes, that 128 KiB are zeros (RFC 8878 3.1.1).
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

// bombs are by content coding.
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
				e.Logf("the client does not ask for %s", coding)
			case err != nil:
				e.Fatalf("1 GiB in %s: %v", coding, err)
			default:
				refusedEvent(e, "1 GiB in "+coding, s)
			}
		})
		if took > mostMemory {
			e.Errorf("1 GiB in %s: the client took %d bytes of memory", coding, took)
		}

		at = e.Serve(shatters(coding, pack(list), &asked))
		r := e.RemoteWith(at, func(r *client.Remote) { r.Compress, r.MaxObjectBytes = true, smallLimit })
		took = allocated(func() {
			if _, err := r.List(e.Context(), listwatch.Query{}); asked.Load() && !errors.Is(err, listwatch.Corrupt) {
				e.Errorf("a list of 1 GiB in %s: got %v, want an error of code Corrupt", coding, err)
			}
		})
		if took > mostMemory {
			e.Errorf("a list of 1 GiB in %s: the client took %d bytes of memory", coding, took)
		}
	}
}

// explodes is a step: a watch that is a bomb, on WebSocket one message of permessage-deflate whatever the coding. asked is set if the
// client asks for that.
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

// shatters is a step: an answer over HTTP that is a bomb.
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
				return // the client has left
			}
		}
	}
}

// allocated returns how many bytes of memory f takes, with all that goes on beside it.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
