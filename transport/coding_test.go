package transport

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/testkit"
)

func negotiateFor(t *testing.T, acceptEncoding string, envelope *Envelope) (Encoder, http.Header, error) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", acceptEncoding)
	w := httptest.NewRecorder()
	c, err := Negotiate(w, r, Options{}, envelope)
	return c, w.Header(), err
}

func frame(t *testing.T, c Encoder, e framing.WatchEvent) []byte {
	t.Helper()
	return testkit.Must(c.Frame(e))(t)
}

// Conformance cases comp/gzip, zstd and not-asked.
func TestNegotiateChoosesTheCoding(t *testing.T) {
	tests := []struct {
		accept   string
		messages bool
		want     string
	}{
		{accept: "gzip", want: "gzip"},
		{accept: "zstd", want: "zstd"},
		{accept: "zstd, gzip", want: "gzip"},
		{accept: "zstd, gzip;q=0.9", want: "zstd"},
		{accept: "identity"},
		{accept: ""},
		{accept: "gzip", messages: true}, // a 101 response has no body to compress
	}
	for _, tt := range tests {
		c, h, err := negotiateFor(t, tt.accept, &Envelope{Messages: tt.messages})
		if err != nil {
			t.Fatal(err)
		}
		if h.Get("Content-Encoding") != tt.want || c.Compression() != tt.want ||
			slices.Contains(h["Vary"], "Accept-Encoding") == tt.messages {
			t.Errorf("%+v: got compression %q, headers %v", tt, c.Compression(), h)
		}
	}
}

func TestNegotiateKeepsCodingOfMiddleware(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	w.Header().Set("Content-Encoding", "br")
	c, err := Negotiate(w, r, Options{}, &Envelope{})
	if err != nil || c.Compression() != "" || w.Header().Get("Content-Encoding") != "br" {
		t.Errorf("%q, %v, %v", c.Compression(), w.Header(), err)
	}
}

func TestExcludedIdentityIsNotAcceptable(t *testing.T) {
	_, h, err := negotiateFor(t, "identity;q=0, br", &Envelope{})
	testkit.WantStatus(t, "identity excluded", err, http.StatusNotAcceptable)
	if h.Get("Content-Encoding") != "" || h.Get("Content-Type") != "" {
		t.Errorf("got headers %v, want no Content headers", h)
	}
}

func TestEnvelopeIsAroundCompressedData(t *testing.T) {
	envelope := &Envelope{Wrap: func(dst, p []byte, _ bool) []byte { return append(append(dst, '<'), p...) }}
	gzipped, _, _ := negotiateFor(t, "gzip", envelope)
	got := frame(t, gzipped, framing.WatchEvent{Type: "ADDED", Object: []byte("{}")})
	if got[compress.ChecksumSize] != '<' || gzipped.WireSize(got) != len(got)-compress.ChecksumSize {
		t.Errorf("got %q, want the envelope around the compressed data", got)
	}
	other := gzipped.WithEnvelope(&Envelope{})
	if other.Compression() != "gzip" {
		t.Errorf("got coding %q after WithEnvelope, want gzip", other.Compression())
	}
	if other.WithEnvelope(envelope) != gzipped {
		t.Error("the first envelope does not restore the Encoder")
	}
}

// A gzip stream is a single, valid member, although its frames are shared with other streams, in
// which they may follow different frames.
func TestStreamCodingCompletesTheMember(t *testing.T) {
	plain, _, _ := negotiateFor(t, "", &Envelope{})
	c, _, err := negotiateFor(t, "gzip", &Envelope{})
	if err != nil {
		t.Fatal(err)
	}
	e := framing.WatchEvent{Type: "ADDED", Object: []byte(`{"metadata":{"name":"a"}}`)}
	for n := range 4 {
		coding := c.NewStreamCoding()
		stream := coding.Header()
		for range n {
			frames := [][]byte{frame(t, c, e), frame(t, c, e)}
			coding.Apply(frames)
			stream = append(stream, slices.Concat(frames...)...)
		}
		z, err := gzip.NewReader(bytes.NewReader(append(stream, coding.Trailer()...)))
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false)
		want := strings.Repeat(string(frame(t, plain, e)), 2*n)
		if got, err := io.ReadAll(z); err != nil || string(got) != want {
			t.Errorf("%d batches: got %q, %v", n, got, err)
		}
	}
	if coding := plain.NewStreamCoding(); coding.Header() != nil || coding.Trailer() != nil {
		t.Errorf("a stream without a coding has header %q, trailer %q", coding.Header(), coding.Trailer())
	}
}

func TestAllFramesAreCompressed(t *testing.T) {
	for _, name := range Codings() {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", name)
		r.Header.Set("Accept", framing.SSE{}.MediaType())
		c, err := Negotiate(httptest.NewRecorder(), r, Options{}, &Envelope{})
		if err != nil {
			t.Fatal(err)
		}
		failure, err := c.Frame(framing.FromError(&listwatch.Error{Code: listwatch.Expired}))
		if err != nil {
			t.Fatal(err)
		}
		frames := [][]byte{c.Opening(), c.Heartbeat(7), failure}
		coding := c.NewStreamCoding()
		coding.Apply(frames)
		stream := append(append(coding.Header(), slices.Concat(frames...)...), coding.Trailer()...)
		z, err := compress.NewReader(name, bytes.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		for _, want := range []string{"retry:", "id: 7", `"code":410`} {
			if !strings.Contains(string(got), want) || err != nil {
				t.Errorf("%s: got %q, %v; want it to contain %q", name, got, err, want)
			}
		}
	}
}
