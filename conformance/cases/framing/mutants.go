package framing

import (
	"bytes"
	"context"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/framing"
)

// Mutants break the cases of framing: first servers, then clients.
var Mutants = []mutation.Mutant{
	{Name: "breaks-lines-within-objects", Breaks: []string{"framing/ndjson-lines", "framing/sse-newline-in-data"}, Defect: reference.Interceptors{
		Transport: mutation.OnFrames(mutation.Replace(`"spec":`, "\"spec\":\n")),
	}},
	{Name: "prefix-is-little-endian", Breaks: []string{"framing/len-prefix"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(func(p []byte) []byte {
		if p[0] == 0 {
			p[0], p[1], p[2], p[3] = p[3], p[2], p[1], p[0]
		}
		return p
	})}},
	{Name: "sequence-without-RS", Breaks: []string{"framing/json-seq"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(mutation.Replace("\x1e", ""))}},
	{Name: "cbor-items-in-arrays", Breaks: []string{"framing/cbor-seq"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(func(p []byte) []byte {
		return append([]byte{0x81}, p...)
	})}},
	{Name: "sse-without-id", Breaks: []string{"framing/sse-fields"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(mutation.WithoutLine("id"))}},
	{Name: "sse-without-type", Breaks: []string{"framing/sse-fields"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(mutation.WithoutLine("event"))}},
	{Name: "sse-may-be-kept", Breaks: []string{"framing/sse-content-type"}, Defect: reference.Interceptors{Handler: mutation.OnWrites(mutation.Replace("no-cache", "max-age=60"))}},
	{Name: "every-message-twice-in-one", Breaks: []string{"framing/ws-one-message-one-event"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(func(p []byte) []byte {
		return append(p, p...)
	})}},
	{Name: "text-is-binary", Breaks: []string{"framing/ws-opcode", "framing/ws-one-message-one-event"}, Defect: reference.Interceptors{Handler: mutation.OnWrites(func(p []byte) []byte {
		if p[0] == mutation.BitFinal|mutation.OpText {
			p[0] = mutation.BitFinal | mutation.OpBinary
		}
		return p
	})}},
	{Name: "closes-with-1000", Breaks: []string{"framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules"}, Defect: reference.Interceptors{Handler: mutation.OnWrites(mutation.ClosesNormally)}},

	{Name: "client-takes-reads-for-events", Breaks: []string{
		"framing/byte-drip", "framing/coalesced", "framing/chunk-boundaries-free", "framing/json-stream-decoder",
	}, Defect: reference.Interceptors{TransportClient: mutation.Decoding(framing.JSON{}, mutation.ReadWise)}},
	{Name: "client-takes-lines-for-events", Breaks: []string{"framing/json-stream-decoder", "framing/field-order-free"}, Defect: reference.Interceptors{
		TransportClient: mutation.Decoding(framing.JSON{}, mutation.LineWise),
	}},
	{Name: "client-knows-no-chunk-extensions", Breaks: []string{"framing/chunk-ext-trailers"}, Defect: reference.Interceptors{
		TransportClient: mutation.OverNetwork(func(c *mutation.AlteredConn) { c.OnRead = mutation.Replace(";", "?") }),
	}},
	{Name: "client-takes-every-end-for-clean", Breaks: []string{
		"framing/truncated-final", "framing/clean-end-vs-abort", "framing/len-prefix-zero", "framing/len-prefix-huge", "framing/json-seq",
		"framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules", "framing/ws-bad-utf8",
	}, Defect: reference.Interceptors{TransportClient: mutation.EndingIn(func(error) error { return io.EOF })}},
	{Name: "client-takes-no-end-for-clean", Breaks: []string{"framing/clean-end-vs-abort", "framing/byte-drip"}, Defect: reference.Interceptors{
		TransportClient: mutation.EndingIn(func(error) error { return &listwatch.Error{Code: listwatch.Unavailable} }),
	}},
	{Name: "client-believes-every-length", Breaks: []string{"framing/len-prefix-huge"}, Defect: reference.Interceptors{TransportClient: mutation.Decoding(framing.LengthPrefixed{}, mutation.Eager)}},
	{Name: "client-skips-what-was-cut", Breaks: []string{"framing/json-seq"}, Defect: reference.Interceptors{TransportClient: mutation.Decoding(framing.JSONSeq{}, mutation.Skipping)}},
	{Name: "client-knows-no-CR", Breaks: []string{"framing/sse-parse-vectors"}, Defect: reference.Interceptors{TransportClient: mutation.Decoding(framing.SSE{}, func(r io.Reader) framing.Decoder {
		return framing.SSE{}.NewDecoder(&withoutCR{r}, 0)
	})}},
	{Name: "client-comes-back-after-204", Breaks: []string{"framing/sse-204"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source { return &tireless{r} }}},
	{Name: "client-pongs-something-else", Breaks: []string{"framing/ws-fragmented-in"}, Defect: reference.Interceptors{TransportClient: mutation.OverNetwork(func(c *mutation.AlteredConn) {
		c.OnWrite = func(p []byte) []byte {
			if p[0] == mutation.BitFinal|mutation.OpPong {
				p[len(p)-1]++
			}
			return p
		}
	})}},
	{Name: "client-closes-with-1000", Breaks: []string{
		"framing/ws-bad-utf8", "framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules",
	}, Defect: reference.Interceptors{TransportClient: mutation.OverNetwork(func(c *mutation.AlteredConn) { c.OnWrite = mutation.ClosesNormally })}},
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
