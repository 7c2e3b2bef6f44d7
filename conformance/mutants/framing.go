package mutants

import (
	"bytes"
	"context"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/framing"
)

// framingMutants break the cases of framing: first servers, then clients.
var framingMutants = []Mutant{
	{"breaks-lines-within-objects", []string{"framing/ndjson-lines", "framing/sse-newline-in-data"}, cases.Interceptors{
		Transport: onFrames(replace(`"spec":`, "\"spec\":\n")),
	}},
	{"prefix-is-little-endian", []string{"framing/len-prefix"}, cases.Interceptors{Transport: onFrames(func(p []byte) []byte {
		if p[0] == 0 {
			p[0], p[1], p[2], p[3] = p[3], p[2], p[1], p[0]
		}
		return p
	})}},
	{"sequence-without-RS", []string{"framing/json-seq"}, cases.Interceptors{Transport: onFrames(replace("\x1e", ""))}},
	{"cbor-items-in-arrays", []string{"framing/cbor-seq"}, cases.Interceptors{Transport: onFrames(func(p []byte) []byte {
		return append([]byte{0x81}, p...)
	})}},
	{"sse-without-id", []string{"framing/sse-fields"}, cases.Interceptors{Transport: onFrames(withoutLine("id"))}},
	{"sse-without-type", []string{"framing/sse-fields"}, cases.Interceptors{Transport: onFrames(withoutLine("event"))}},
	{"sse-may-be-kept", []string{"framing/sse-content-type"}, cases.Interceptors{Handler: onWrites(replace("no-cache", "max-age=60"))}},
	{"every-message-twice-in-one", []string{"framing/ws-one-message-one-event"}, cases.Interceptors{Transport: onFrames(func(p []byte) []byte {
		return append(p, p...)
	})}},
	{"text-is-binary", []string{"framing/ws-opcode", "framing/ws-one-message-one-event"}, cases.Interceptors{Handler: onWrites(func(p []byte) []byte {
		if p[0] == bitFinal|opText {
			p[0] = bitFinal | opBinary
		}
		return p
	})}},
	{"closes-with-1000", []string{"framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules"}, cases.Interceptors{Handler: onWrites(closesNormally)}},

	{"client-takes-reads-for-events", []string{
		"framing/byte-drip", "framing/coalesced", "framing/chunk-boundaries-free", "framing/json-stream-decoder",
	}, cases.Interceptors{TransportClient: decoding(framing.JSON{}, readWise)}},
	{"client-takes-lines-for-events", []string{"framing/json-stream-decoder", "framing/field-order-free"}, cases.Interceptors{
		TransportClient: decoding(framing.JSON{}, lineWise),
	}},
	{"client-knows-no-chunk-extensions", []string{"framing/chunk-ext-trailers"}, cases.Interceptors{
		TransportClient: overNetwork(func(c *alteredConn) { c.onRead = replace(";", "?") }),
	}},
	{"client-takes-every-end-for-clean", []string{
		"framing/truncated-final", "framing/clean-end-vs-abort", "framing/len-prefix-zero", "framing/len-prefix-huge", "framing/json-seq",
		"framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules", "framing/ws-bad-utf8",
	}, cases.Interceptors{TransportClient: endingIn(func(error) error { return io.EOF })}},
	{"client-takes-no-end-for-clean", []string{"framing/clean-end-vs-abort", "framing/byte-drip"}, cases.Interceptors{
		TransportClient: endingIn(func(error) error { return &listwatch.Error{Code: listwatch.Unavailable} }),
	}},
	{"client-believes-every-length", []string{"framing/len-prefix-huge"}, cases.Interceptors{TransportClient: decoding(framing.LengthPrefixed{}, eager)}},
	{"client-skips-what-was-cut", []string{"framing/json-seq"}, cases.Interceptors{TransportClient: decoding(framing.JSONSeq{}, skipping)}},
	{"client-knows-no-CR", []string{"framing/sse-parse-vectors"}, cases.Interceptors{TransportClient: decoding(framing.SSE{}, func(r io.Reader) framing.Decoder {
		return framing.SSE{}.NewDecoder(&withoutCR{r}, 0)
	})}},
	{"client-comes-back-after-204", []string{"framing/sse-204"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source { return &tireless{r} }}},
	{"client-pongs-something-else", []string{"framing/ws-fragmented-in"}, cases.Interceptors{TransportClient: overNetwork(func(c *alteredConn) {
		c.onWrite = func(p []byte) []byte {
			if p[0] == bitFinal|opPong {
				p[len(p)-1]++
			}
			return p
		}
	})}},
	{"client-closes-with-1000", []string{
		"framing/ws-bad-utf8", "framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules",
	}, cases.Interceptors{TransportClient: overNetwork(func(c *alteredConn) { c.onWrite = closesNormally })}},
}

// withoutCR reads CR as space.
type withoutCR struct{ io.Reader }

// Read reads CR as space.
func (r *withoutCR) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	copy(p[:n], bytes.ReplaceAll(p[:n], []byte("\r"), []byte(" ")))
	return n, err
}

// tireless is a client that opens another watch behind every end.
type tireless struct{ *client.Remote }

// Watch opens a watch that does not end.
func (t *tireless) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := t.Remote.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &tirelessWatcher{w, t.Remote, q}, nil
}

type tirelessWatcher struct {
	listwatch.Watcher
	from *client.Remote
	q    listwatch.Query
}

// Next goes on with another watch where one has ended.
func (w *tirelessWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	if err != io.EOF {
		return n, err
	}
	again, err := w.from.Watch(ctx, w.q)
	if err != nil {
		return 0, err
	}
	_ = w.Watcher.Close()
	w.Watcher = again
	return w.Watcher.Next(ctx, dst)
}
