package transport

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
)

// zipped returns p as a stream of one gzip member.
func zipped(p string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, p)
	z.Close()
	return b.String()
}

// received returns a Receiver of a response with a body in a content coding.
func received(t *testing.T, contentEncoding string, body io.Reader, r *Request) (Receiver, error) {
	t.Helper()
	resp := &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 2, Body: io.NopCloser(body), Request: new(http.Request).WithContext(t.Context()),
		Header: http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {contentEncoding}},
	}
	c, err := newReceiver(resp, r, func(error) {})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func TestOnlyCodingsThatWereAskedForAreRead(t *testing.T) {
	for contentEncoding, want := range map[string]bool{
		"": true, "identity": true, "gzip": true, "GZip": true, "x-gzip": true, "zstd": false, "br": false, "gzip, gzip": false,
	} {
		_, err := received(t, contentEncoding, strings.NewReader(""), &Request{Codings: []string{"gzip"}})
		if want != (err == nil) || !want && listwatch.CodeOf(err) != listwatch.Unsupported {
			t.Errorf("%q: %v", contentEncoding, err)
		}
	}
	if _, err := received(t, "br", nil, &Request{Codings: []string{"br"}}); listwatch.CodeOf(err) != listwatch.Unsupported {
		t.Errorf("a coding that nobody can read: %v", err)
	}
}

// What comes after the last event decides how the stream ended.
func TestCompressedStreamsTellAnEndFromACut(t *testing.T) {
	whole := zipped(oneEvent)
	tests := []struct {
		name, body string
		breaks     bool
		code       listwatch.Code // zero: a clean end
		within     bool
	}{
		{"one member", whole, false, 0, false},
		{"many members", whole + whole + zipped(""), false, 0, false},
		{"nothing", "", false, 0, false},
		{"cut after a member", whole, true, listwatch.Unavailable, false},
		{"cut within a member", whole + whole[:20], true, listwatch.Unavailable, true},
		{"cut within an event that is decompressed", whole + zipped(oneEvent[:10]), true, listwatch.Unavailable, true},
		{"a clean end within a member", whole + whole[:20], false, listwatch.Corrupt, true},
		{"a clean end without the check", string(compress.AppendDeflate([]byte(compress.GzipHeader), []byte(oneEvent))), false, listwatch.Corrupt, false},
		{"a clean end within an event", zipped(oneEvent[:10]), false, listwatch.Corrupt, true},
		{"no gzip", oneEvent, false, listwatch.Corrupt, false},
		{"another check", whole[:len(whole)-1] + "x", false, listwatch.Corrupt, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(tt.body)
			if tt.breaks {
				body = io.MultiReader(body, errorReader{})
			}
			r, err := received(t, "gzip", body, &Request{Codings: []string{"gzip"}})
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = r.Receive()
			}
			switch {
			case tt.code == 0 && err != io.EOF, tt.code != 0 && listwatch.CodeOf(err) != tt.code:
				t.Errorf("got %v, want code %v", err, tt.code)
			case errors.Is(err, io.ErrUnexpectedEOF) != tt.within:
				t.Errorf("got %v; within an event: %t", err, tt.within)
			}
		})
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// A bomb is a gzip stream of many times the same part.
type bomb struct {
	head, part []byte
	parts      int
	buf        []byte
}

func (b *bomb) Read(p []byte) (int, error) {
	if len(b.buf) == 0 {
		if b.parts == 0 {
			return 0, io.EOF
		}
		b.parts--
		b.buf = append(b.head, b.part...)
		b.head = nil
	}
	n := copy(p, b.buf)
	b.buf = b.buf[n:]
	return n, nil
}

// limit/bomb: a gibibyte is refused at the limit, with no more memory than that.
func TestABombStopsAtTheLimit(t *testing.T) {
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
			name, head string
			compress   func(dst, p []byte) []byte
		}{{compress.Gzip, compress.GzipHeader, compress.AppendDeflate}, {compress.Zstd, "", compress.AppendZstd}} {
			part := []byte(strings.Repeat(tt.fill, 1<<20))
			b := &bomb{head: c.compress([]byte(c.head), []byte(tt.before)), part: c.compress(nil, part), parts: size >> 20}
			r, err := received(t, c.name, b, &Request{Codings: Codings(), Limit: limit})
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
				t.Errorf("%s, %s: %d bytes of memory", name, c.name, got)
			}
			if read := size>>20 - b.parts; read > 4 {
				t.Errorf("%s, %s: %d MiB were read", name, c.name, read)
			}
		}
	}
}

func TestEachEventHasTheLimitForItself(t *testing.T) {
	const limit = 1 << 10
	event := `{"type":"ADDED","object":{"text":"` + strings.Repeat("a", limit-100) + `"}}` + "\n"
	r, err := received(t, "gzip", strings.NewReader(zipped(strings.Repeat(event, 3000))), &Request{Codings: Codings(), Limit: limit})
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

func TestErrorsAreDecompressed(t *testing.T) {
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}`
	resp := &http.Response{
		StatusCode: 410, Body: io.NopCloser(strings.NewReader(zipped(status))), Header: http.Header{"Content-Encoding": {"gzip"}},
	}
	if e := ResponseError(resp); e.Code != listwatch.Expired || e.Message != "too old" {
		t.Errorf("got %v", e)
	}
}

// FuzzCompressedStream reads anything that says it is compressed JSON.
func FuzzCompressedStream(f *testing.F) {
	f.Add("gzip", []byte(zipped(oneEvent)))
	f.Add("zstd", compress.AppendZstd(nil, []byte(oneEvent)))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		const limit = 4 << 10
		r, err := received(t, name, bytes.NewReader(data), &Request{Codings: Codings(), Limit: limit, Framings: []framing.Framer{framing.JSON{}}})
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
				t.Errorf("%v is no *listwatch.Error", err)
			}
			return
		}
	})
}
