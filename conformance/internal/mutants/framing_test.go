package mutants

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
)

// framingMutants are servers and clients with one defect each, which the cases about framing must
// detect. Mutants of the server come first, then mutants of the client.
var framingMutants = []mutant{
	{
		Name:   "sends-line-breaks-inside-objects",
		Breaks: []string{"framing/ndjson-lines", "framing/sse-newline-in-data"},
		Defect: defect{
			Transport: onFrames(replace(`"spec":`, "\"spec\":\n")),
		},
	},
	{
		Name: "prefix-is-little-endian", Breaks: []string{"framing/len-prefix"},
		Defect: defect{Transport: onFrames(func(p []byte) []byte {
			if p[0] == 0 {
				p[0], p[1], p[2], p[3] = p[3], p[2], p[1], p[0]
			}
			return p
		})},
	},
	{
		Name: "sequence-without-RS", Breaks: []string{"framing/json-seq"},
		Defect: defect{Transport: onFrames(replace("\x1e", ""))},
	},
	{
		Name: "wraps-cbor-items-in-arrays", Breaks: []string{"framing/cbor-seq"},
		Defect: defect{Transport: onFrames(func(p []byte) []byte {
			return append([]byte{0x81}, p...)
		})},
	},
	{
		Name: "sse-without-id", Breaks: []string{"framing/sse-fields"},
		Defect: defect{Transport: onFrames(withoutLine("id"))},
	},
	{
		Name: "sse-without-type", Breaks: []string{"framing/sse-fields"},
		Defect: defect{Transport: onFrames(withoutLine("event"))},
	},
	{
		Name: "sse-is-cacheable", Breaks: []string{"framing/sse-content-type"},
		Defect: defect{Handler: onHeader(func(h http.Header) { h.Set("Cache-Control", "max-age=60") })},
	},
	{
		Name: "two-events-in-one-message", Breaks: []string{"framing/ws-one-message-one-event"},
		Defect: defect{Transport: onFrames(func(p []byte) []byte {
			return append(p, p...)
		})},
	},
	{
		Name: "sends-text-as-binary", Breaks: []string{"framing/ws-opcode", "framing/ws-one-message-one-event"},
		Defect: defect{Handler: onWrites(func(p []byte) []byte {
			if p[0] == bitFinal|opText {
				p[0] = bitFinal | opBinary
			}
			return p
		})},
	},
	{
		Name:   "closes-with-1000",
		Breaks: []string{"framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules"},
		Defect: defect{Handler: onWrites(withNormalClose)},
	},

	{
		Name: "client-treats-each-read-as-an-event",
		Breaks: []string{
			"framing/byte-drip", "framing/coalesced", "framing/chunk-boundaries-free", "framing/json-stream-decoder",
		},
		Defect: defect{TransportClient: withDecoder(framing.JSON{}, eventPerRead)},
	},
	{
		Name:   "client-treats-each-line-as-an-event",
		Breaks: []string{"framing/json-stream-decoder", "framing/field-order-free"},
		Defect: defect{
			TransportClient: withDecoder(framing.JSON{}, eventPerLine),
		},
	},
	{
		Name: "client-does-not-parse-chunk-extensions", Breaks: []string{"framing/chunk-ext-trailers"},
		Defect: defect{
			TransportClient: onClientConns(func(c *alteredConn) { c.OnRead = replace(";", "?") }),
		},
	},
	{
		Name: "client-treats-every-end-as-clean",
		Breaks: []string{
			"framing/truncated-final", "framing/clean-end-vs-abort", "framing/len-prefix-zero",
			"framing/len-prefix-huge", "framing/json-seq", "framing/ws-unmasked-server", "framing/ws-rsv",
			"framing/ws-control-rules", "framing/ws-bad-utf8",
		},
		Defect: defect{TransportClient: onReceiveError(func(error) error { return io.EOF })},
	},
	{
		Name: "client-treats-no-end-as-clean", Breaks: []string{"framing/clean-end-vs-abort", "framing/byte-drip"},
		Defect: defect{
			TransportClient: onReceiveError(func(error) error { return &listwatch.Error{Code: listwatch.Unavailable} }),
		},
	},
	{
		Name: "client-trusts-every-length", Breaks: []string{"framing/len-prefix-huge"},
		Defect: defect{TransportClient: withDecoder(framing.LengthPrefixed{}, preallocatingDecoder)},
	},
	{
		Name: "client-skips-truncated-elements", Breaks: []string{"framing/json-seq"},
		Defect: defect{TransportClient: withDecoder(framing.JSONSeq{}, skipInvalidElements)},
	},
	{
		Name: "client-reads-CR-as-space", Breaks: []string{"framing/sse-parse-vectors"},
		Defect: defect{TransportClient: withDecoder(framing.SSE{}, func(r io.Reader) framing.Decoder {
			return framing.SSE{}.NewDecoder(&withoutCR{r}, 0)
		})},
	},
	{
		Name: "client-reconnects-after-204", Breaks: []string{"framing/sse-204"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source { return &reconnectingClient{r} }},
	},
	{
		Name: "client-changes-pong-data", Breaks: []string{"framing/ws-fragmented-in"},
		Defect: defect{TransportClient: onClientConns(func(c *alteredConn) {
			c.OnWrite = func(p []byte) []byte {
				if p[0] == bitFinal|opPong {
					p[len(p)-1]++
				}
				return p
			}
		})},
	},
	{
		Name: "client-closes-with-1000",
		Breaks: []string{
			"framing/ws-bad-utf8", "framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules",
		},
		Defect: defect{TransportClient: onClientConns(func(c *alteredConn) { c.OnWrite = withNormalClose })},
	},
}

// withoutCR replaces each carriage return with a space.
type withoutCR struct{ io.Reader }

func (w *withoutCR) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	copy(p[:n], bytes.ReplaceAll(p[:n], []byte("\r"), []byte(" ")))
	return n, err
}

// reconnectingClient is a client that opens another watch whenever a stream ends cleanly,
// even after 204.
type reconnectingClient struct{ *client.Remote }

func (r *reconnectingClient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := r.Remote.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &reconnectingWatcher{w, r.Remote, q}, nil
}

type reconnectingWatcher struct {
	listwatch.Watcher
	from *client.Remote
	q    listwatch.Query
}

func (r *reconnectingWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := r.Watcher.Next(ctx, dst)
	if err != io.EOF {
		return n, err
	}
	again, err := r.from.Watch(ctx, r.q)
	if err != nil {
		return 0, err
	}
	_ = r.Watcher.Close()
	r.Watcher = again
	return r.Watcher.Next(ctx, dst)
}
