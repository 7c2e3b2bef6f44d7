package transporttest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// compressibleEvent returns an event whose text compresses to about half its size.
func compressibleEvent(n, size int) listwatch.Event {
	r := rand.New(rand.NewPCG(uint64(n), 0))
	var text strings.Builder
	for text.Len() < size {
		fmt.Fprintf(&text, `{"uid":"%08x","ready":%t},`, r.Uint32(), r.IntN(2) == 0)
	}
	o := fmt.Appendf(nil, `{"kind":"Thing","metadata":{"resourceVersion":"%d"},"list":[%s0]}`, n, text.String())
	return listwatch.Event{Type: listwatch.Added, Object: &listwatch.Object{Data: o}, Version: listwatch.Version(n)}
}

// testCompressed runs conformance cases comp/gzip, zstd and ws-deflate.
func testCompressed(f *fixture) {
	s, r := f.dial(f.Context())
	if got := s.Encoder.Compression(); got != f.compression {
		f.Fatalf("got compression %q, want %q", got, f.compression)
	}
	f.wantEncoding(r.Header(), f.compression)
	e := compressibleEvent(1, 4000)
	frames := f.encodeEvents(s, e)
	if got := s.Encoder.WireSize(frames[0]); f.compression != "" && got > 3000 {
		f.Errorf("%d bytes were compressed to %d", len(e.Object.Data), got)
	}
	if err := s.Sender.Send(frames); err != nil {
		f.Error(err)
	}
	f.want(r, e)
}

// wantEncoding checks that the headers of a response name the compression.
func (f *fixture) wantEncoding(h http.Header, compression string) {
	f.Helper()
	if f.pair.Server.Name() == "websocket" {
		got := strings.HasPrefix(h.Get("Sec-Websocket-Extensions"), "permessage-deflate;")
		if got != (compression != "") || h.Get("Content-Encoding") != "" {
			f.Errorf("got headers %v, want compression %q", h, compression)
		}
		return
	}
	if got := h.Get("Content-Encoding"); got != compression {
		f.Errorf("Content-Encoding: %q, want %q", got, compression)
	}
	if !strings.Contains(strings.Join(h.Values("Vary"), ","), "Accept-Encoding") {
		f.Errorf("Vary: %q", h.Values("Vary"))
	}
}

// testPrompt runs conformance case comp/first-event-latency. Each event must arrive even
// though no other event follows and fake time does not advance.
func testPrompt(f *fixture) {
	for _, framer := range f.pair.Framings {
		s, r := f.dial(f.Context(), framer)
		start := time.Now()
		for i, size := range []int{1, 200, 300, 5000, 20000, 1, 2} {
			f.send(s, compressibleEvent(i+1, size))
			f.want(r, compressibleEvent(i+1, size))
		}
		if d := time.Since(start); d > 0 {
			f.Errorf("%s: the events took %v", framer.MediaType(), d)
		}
		s.Sender.Close(transport.Finished)
		if _, err := r.Receive(); err != io.EOF {
			f.Errorf("%s: got %v, want %v", framer.MediaType(), err, io.EOF)
		}
	}
}

// testShared runs conformance case comp/shared-once. All streams can send the same compressed frame
// of an event, even if they began at different times and sent different events before.
func testShared(f *fixture) {
	e := compressibleEvent(1, 4000)
	before, r1 := f.dial(f.Context())
	f.send(before, compressibleEvent(2, 9000), compressibleEvent(3, 10))
	s, r2 := f.dial(f.Context())
	if before.Encoder != s.Encoder {
		f.Error("two streams have different Encoders, so they cannot share frames")
	}
	shared := f.encodeEvents(before, e)[0]
	for _, s := range []*Stream{before, s, s} {
		if err := s.Sender.Send([][]byte{shared}); err != nil {
			f.Errorf("send: %v", err)
		}
	}
	f.want(r1, compressibleEvent(2, 9000), compressibleEvent(3, 10), e)
	f.want(r2, e, e)
	for _, s := range []*Stream{before, s} {
		s.Sender.Close(transport.Finished)
	}
	for _, r := range []transport.Receiver{r1, r2} {
		if _, err := r.Receive(); err != io.EOF {
			f.Errorf("got %v, want %v", err, io.EOF)
		}
	}
}

// testBomb runs conformance case limit/bomb.
func testBomb(f *fixture) {
	f.limit = 10 << 10
	s, r := f.dial(f.Context())
	fits, bomb := Event(1, 9<<10), Event(2, 512<<10)
	f.send(s, fits)
	f.want(r, fits)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = s.Sender.Send(f.encodeEvents(s, bomb)) // fails if the client disconnects
	}()
	for range 2 {
		if _, err := r.Receive(); listwatch.CodeOf(err) != listwatch.Corrupt {
			f.Errorf("got %v for an event over the limit, want code %v", err, listwatch.Corrupt)
		}
	}
	r.Close()
	<-sent
	s.Sender.Close(transport.Abort)
}

// testNotRequested runs conformance case comp/not-asked.
func testNotRequested(f *fixture) {
	s, r := f.dial(f.Context())
	f.wantEncoding(r.Header(), "")
	f.wantUncompressed(s, r)
}

// testCompressionDisabled runs conformance cases comp/breach-opt-out and ws-declined.
func testCompressionDisabled(f *fixture) {
	f.config.Handler = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, transport.WithoutCompression(r))
		})
	}
	f.open()
	r, err := f.client.Dial(f.Context(), &transport.Request{URL: f.server.URL, Codings: transport.Codings()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { r.Close() })
	f.wantEncoding(r.Header(), "")
	f.wantUncompressed(<-f.server.Streams, r)
}

// wantUncompressed sends an event and checks that it is not compressed.
func (f *fixture) wantUncompressed(s *Stream, r transport.Receiver) {
	f.Helper()
	e := compressibleEvent(1, 4000)
	frames := f.encodeEvents(s, e)
	if s.Encoder.Compression() != "" || !strings.Contains(string(frames[0]), string(e.Object.Data)) {
		f.Errorf("the frame is compressed, and the encoder's compression is %q", s.Encoder.Compression())
	}
	if err := s.Sender.Send(frames); err != nil {
		f.Error(err)
	}
	f.want(r, e)
}
