package transport

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
)

// gzipped returns p as a stream of one gzip member.
func gzipped(p string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, p)
	z.Close()
	return b.String()
}

// receiveBody returns a Receiver for a response with the given body and content coding.
func receiveBody(t *testing.T, contentEncoding string, body io.Reader, r *Request) (Receiver, error) {
	t.Helper()
	resp := &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 2, Body: io.NopCloser(body),
		Request: new(http.Request).WithContext(t.Context()),
		Header:  http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {contentEncoding}},
	}
	c, err := newReceiver(resp, r, func(error) {})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func TestOnlyRequestedCodingsAreAccepted(t *testing.T) {
	for contentEncoding, want := range map[string]bool{
		"": true, "identity": true, "gzip": true, "GZip": true, "x-gzip": true, "zstd": false, "br": false,
		"gzip, gzip": false,
	} {
		_, err := receiveBody(t, contentEncoding, strings.NewReader(""), &Request{Codings: []string{"gzip"}})
		if want != (err == nil) || !want && listwatch.CodeOf(err) != listwatch.Unsupported {
			t.Errorf("%q: %v", contentEncoding, err)
		}
	}
	if _, err := receiveBody(t, "br", nil,
		&Request{Codings: []string{"br"}}); listwatch.CodeOf(err) != listwatch.Unsupported {
		t.Errorf("an unknown coding: %v", err)
	}
}

func TestTheLargestLimitIsNoLimit(t *testing.T) {
	c, err := receiveBody(t, "gzip", strings.NewReader(gzipped(oneEvent)),
		&Request{Codings: []string{"gzip"}, Limit: math.MaxInt})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := c.Receive(); err != nil || e.Type != "ADDED" {
		t.Errorf("got %s, %v; want ADDED", e.Type, err)
	}
}

// The bytes after the last event determine whether the stream has ended cleanly.
func TestCompressedTruncationIsNotACleanEnd(t *testing.T) {
	whole := gzipped(oneEvent)
	tests := []struct {
		name, body  string
		fails       bool           // whether the connection fails after body
		code        listwatch.Code // the expected code; zero for a clean end
		withinEvent bool
	}{
		{"one member", whole, false, 0, false},
		{"many members", whole + whole + gzipped(""), false, 0, false},
		{"empty", "", false, 0, false},
		{"failure after a member", whole, true, listwatch.Unavailable, false},
		{"failure within a member", whole + whole[:20], true, listwatch.Unavailable, true},
		{"failure within a decompressed event", whole + gzipped(oneEvent[:10]), true, listwatch.Unavailable, true},
		{"a clean end within a member", whole + whole[:20], false, listwatch.Corrupt, true},
		{
			"a clean end without the checksum",
			string(compress.AppendDeflate([]byte(compress.GzipHeader), []byte(oneEvent))), false,
			listwatch.Corrupt, false,
		},
		{"a clean end within an event", gzipped(oneEvent[:10]), false, listwatch.Corrupt, true},
		{"not gzip", oneEvent, false, listwatch.Corrupt, false},
		{"a wrong checksum", whole[:len(whole)-1] + "x", false, listwatch.Corrupt, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(tt.body)
			if tt.fails {
				body = io.MultiReader(body, errorReader{})
			}
			r, err := receiveBody(t, "gzip", body, &Request{Codings: []string{"gzip"}})
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = r.Receive()
			}
			switch {
			case tt.code == 0 && err != io.EOF, tt.code != 0 && listwatch.CodeOf(err) != tt.code:
				t.Errorf("got %v, want code %v", err, tt.code)
			case errors.Is(err, io.ErrUnexpectedEOF) != tt.withinEvent:
				t.Errorf("got %v; want within an event: %t", err, tt.withinEvent)
			}
		})
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// A bomb is a compressed stream that repeats the same part many times.
type bomb struct {
	header, part []byte
	parts        int
	buf          []byte
}

func (b *bomb) Read(p []byte) (int, error) {
	if len(b.buf) == 0 {
		if b.parts == 0 {
			return 0, io.EOF
		}
		b.parts--
		b.buf = append(b.header, b.part...)
		b.header = nil
	}
	n := copy(p, b.buf)
	b.buf = b.buf[n:]
	return n, nil
}

// Conformance case limit/bomb: decompressing 1 GiB stops at the limit, without allocating
// much more than the limit.
func TestDecompressionStopsAtTheLimit(t *testing.T) {
	const size, limit = 1 << 30, 1 << 20
	tests := map[string]struct{ before, fill string }{
		"an event":          {`{"type":"ADDED","object":{"text":"`, "\x00"},
		"a long string":     {`{"type":"ADDED","object":{"text":"`, "a"},
		"space":             {"", " "},
		"space in an event": {`{"type":"ADDED",`, " "},
		"lines":             {"", "\n"},
	}
	for name, tt := range tests {
		for _, c := range []struct {
			name, header string
			compress     func(dst, p []byte) []byte
		}{{compress.Gzip, compress.GzipHeader, compress.AppendDeflate}, {compress.Zstd, "", compress.AppendZstd}} {
			part := []byte(strings.Repeat(tt.fill, 1<<20))
			b := &bomb{
				header: c.compress([]byte(c.header), []byte(tt.before)), part: c.compress(nil, part),
				parts: size >> 20,
			}
			r, err := receiveBody(t, c.name, b, &Request{Codings: Codings(), Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = r.Receive()
			runtime.ReadMemStats(&after)
			if listwatch.CodeOf(err) != listwatch.Corrupt {
				t.Errorf("%s, %s: %v, want code %v", name, c.name, err, listwatch.Corrupt)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 12*limit {
				t.Errorf("%s, %s: allocated %d bytes", name, c.name, got)
			}
			if read := size>>20 - b.parts; read > 4 {
				t.Errorf("%s, %s: read %d MiB", name, c.name, read)
			}
		}
	}
}

func TestLimitAppliesToEachEvent(t *testing.T) {
	const limit = 1 << 10
	event := `{"type":"ADDED","object":{"text":"` + strings.Repeat("a", limit-100) + `"}}` + "\n"
	r, err := receiveBody(t, "gzip", strings.NewReader(gzipped(strings.Repeat(event, 3000))),
		&Request{Codings: Codings(), Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		if _, err := r.Receive(); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	if _, err := r.Receive(); err != io.EOF {
		t.Errorf("got %v, want %v", err, io.EOF)
	}
}

func TestErrorResponsesAreDecompressed(t *testing.T) {
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}`
	resp := &http.Response{
		StatusCode: 410, Body: io.NopCloser(strings.NewReader(gzipped(status))),
		Header: http.Header{"Content-Encoding": {"gzip"}},
	}
	if e := ResponseError(resp); e.Code != listwatch.Expired || e.Message != "too old" {
		t.Errorf("got error %v, want Expired with the message \"too old\"", e)
	}
}

// FuzzCompressedStream reads arbitrary bytes as a compressed stream.
func FuzzCompressedStream(f *testing.F) {
	f.Add("gzip", []byte(gzipped(oneEvent)))
	f.Add("zstd", compress.AppendZstd(nil, []byte(oneEvent)))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		const limit = 4 << 10
		r, err := receiveBody(t, name, bytes.NewReader(data),
			&Request{Codings: Codings(), Limit: limit, Framings: []framing.Framer{framing.JSON{}}})
		if err != nil {
			return
		}
		for {
			e, err := r.Receive()
			if len(e.Object) > limit {
				t.Errorf("an object of %d bytes", len(e.Object))
			}
			if err == nil {
				continue
			}
			if _, ok := errors.AsType[*listwatch.Error](err); !ok && err != io.EOF {
				t.Errorf("%v is not a *listwatch.Error", err)
			}
			return
		}
	})
}
