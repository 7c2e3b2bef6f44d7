package framing

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/internal/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/framing"
)

// Mutants are servers and clients with one defect each, which the cases about framing must detect.
// Mutants of the server come first, then mutants of the client.
var Mutants = []mutation.Mutant{
	{Name: "sends-line-breaks-inside-objects", Breaks: []string{"framing/ndjson-lines", "framing/sse-newline-in-data"}, Defect: reference.Interceptors{
		Transport: mutation.OnFrames(mutation.Replace(`"spec":`, "\"spec\":\n")),
	}},
	{Name: "prefix-is-little-endian", Breaks: []string{"framing/len-prefix"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(func(p []byte) []byte {
		if p[0] == 0 {
			p[0], p[1], p[2], p[3] = p[3], p[2], p[1], p[0]
		}
		return p
	})}},
	{Name: "sequence-without-RS", Breaks: []string{"framing/json-seq"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(mutation.Replace("\x1e", ""))}},
	{Name: "wraps-cbor-items-in-arrays", Breaks: []string{"framing/cbor-seq"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(func(p []byte) []byte {
		return append([]byte{0x81}, p...)
	})}},
	{Name: "sse-without-id", Breaks: []string{"framing/sse-fields"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(mutation.WithoutLine("id"))}},
	{Name: "sse-without-type", Breaks: []string{"framing/sse-fields"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(mutation.WithoutLine("event"))}},
	{Name: "sse-is-cacheable", Breaks: []string{"framing/sse-content-type"}, Defect: reference.Interceptors{Handler: mutation.OnHeader(func(h http.Header) { h.Set("Cache-Control", "max-age=60") })}},
	{Name: "two-events-in-one-message", Breaks: []string{"framing/ws-one-message-one-event"}, Defect: reference.Interceptors{Transport: mutation.OnFrames(func(p []byte) []byte {
		return append(p, p...)
	})}},
	{Name: "sends-text-as-binary", Breaks: []string{"framing/ws-opcode", "framing/ws-one-message-one-event"}, Defect: reference.Interceptors{Handler: mutation.OnWrites(func(p []byte) []byte {
		if p[0] == mutation.BitFinal|mutation.OpText {
			p[0] = mutation.BitFinal | mutation.OpBinary
		}
		return p
	})}},
	{Name: "closes-with-1000", Breaks: []string{"framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules"}, Defect: reference.Interceptors{Handler: mutation.OnWrites(mutation.WithNormalClose)}},

	{Name: "client-treats-each-read-as-an-event", Breaks: []string{
		"framing/byte-drip", "framing/coalesced", "framing/chunk-boundaries-free", "framing/json-stream-decoder",
	}, Defect: reference.Interceptors{TransportClient: mutation.WithDecoder(framing.JSON{}, mutation.EventPerRead)}},
	{Name: "client-treats-each-line-as-an-event", Breaks: []string{"framing/json-stream-decoder", "framing/field-order-free"}, Defect: reference.Interceptors{
		TransportClient: mutation.WithDecoder(framing.JSON{}, mutation.EventPerLine),
	}},
	{Name: "client-does-not-parse-chunk-extensions", Breaks: []string{"framing/chunk-ext-trailers"}, Defect: reference.Interceptors{
		TransportClient: mutation.OnClientConns(func(c *mutation.AlteredConn) { c.OnRead = mutation.Replace(";", "?") }),
	}},
	{Name: "client-treats-every-end-as-clean", Breaks: []string{
		"framing/truncated-final", "framing/clean-end-vs-abort", "framing/len-prefix-zero", "framing/len-prefix-huge", "framing/json-seq",
		"framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules", "framing/ws-bad-utf8",
	}, Defect: reference.Interceptors{TransportClient: mutation.OnReceiveError(func(error) error { return io.EOF })}},
	{Name: "client-treats-no-end-as-clean", Breaks: []string{"framing/clean-end-vs-abort", "framing/byte-drip"}, Defect: reference.Interceptors{
		TransportClient: mutation.OnReceiveError(func(error) error { return &listwatch.Error{Code: listwatch.Unavailable} }),
	}},
	{Name: "client-trusts-every-length", Breaks: []string{"framing/len-prefix-huge"}, Defect: reference.Interceptors{TransportClient: mutation.WithDecoder(framing.LengthPrefixed{}, mutation.PreallocatingDecoder)}},
	{Name: "client-skips-truncated-elements", Breaks: []string{"framing/json-seq"}, Defect: reference.Interceptors{TransportClient: mutation.WithDecoder(framing.JSONSeq{}, mutation.SkipInvalidElements)}},
	{Name: "client-reads-CR-as-space", Breaks: []string{"framing/sse-parse-vectors"}, Defect: reference.Interceptors{TransportClient: mutation.WithDecoder(framing.SSE{}, func(r io.Reader) framing.Decoder {
		return framing.SSE{}.NewDecoder(&withoutCR{r}, 0)
	})}},
	{Name: "client-reconnects-after-204", Breaks: []string{"framing/sse-204"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source { return &reconnectingClient{r} }}},
	{Name: "client-changes-pong-data", Breaks: []string{"framing/ws-fragmented-in"}, Defect: reference.Interceptors{TransportClient: mutation.OnClientConns(func(c *mutation.AlteredConn) {
		c.OnWrite = func(p []byte) []byte {
			if p[0] == mutation.BitFinal|mutation.OpPong {
				p[len(p)-1]++
			}
			return p
		}
	})}},
	{Name: "client-closes-with-1000", Breaks: []string{
		"framing/ws-bad-utf8", "framing/ws-unmasked-server", "framing/ws-rsv", "framing/ws-control-rules",
	}, Defect: reference.Interceptors{TransportClient: mutation.OnClientConns(func(c *mutation.AlteredConn) { c.OnWrite = mutation.WithNormalClose })}},
}

// withoutCR replaces each carriage return with a space.
type withoutCR struct{ io.Reader }

func (r *withoutCR) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	copy(p[:n], bytes.ReplaceAll(p[:n], []byte("\r"), []byte(" ")))
	return n, err
}

// reconnectingClient is a client that opens another watch whenever a stream ends cleanly,
// even after 204.
type reconnectingClient struct{ *client.Remote }

func (t *reconnectingClient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := t.Remote.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &reconnectingWatcher{w, t.Remote, q}, nil
}

type reconnectingWatcher struct {
	listwatch.Watcher
	from *client.Remote
	q    listwatch.Query
}

func (w *reconnectingWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
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
