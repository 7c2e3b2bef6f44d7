package framing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

// Conformance case limit/event-too-big-client: the limit is exact, and applies to each
// event and not to the stream.
func TestLimitAppliesToOneEvent(t *testing.T) {
	eachFramer(t, func(t *testing.T, f Framer) {
		e := WatchEvent{
			Type:   "ADDED",
			Object: []byte(`{"metadata":{"name":"a"},"s":"` + strings.Repeat("x", 20_000) + `"}`),
		}
		stream, ends := encode(t, f, e, e, e)
		limit := ends[0]
		if f == Framer(CBORSeq{}) { // the limit applies to the JSON too
			limit = len(`{"type":"ADDED","object":}`) + len(e.Object)
		}
		limit = minBytesToDecode(f, limit)
		if got, err := decodeAll(f.NewDecoder(bytes.NewReader(stream), limit)); len(got) != 3 || err != io.EOF {
			t.Errorf("limit %d: got %d events and %v, want 3 and EOF", limit, len(got), err)
		}
		_, err := f.NewDecoder(bytes.NewReader(stream), limit-1).Decode()
		if !errors.Is(err, listwatch.Corrupt) || errors.Is(err, io.ErrUnexpectedEOF) ||
			!strings.Contains(err.Error(), fmt.Sprint(limit-1)) {
			t.Errorf("limit %d: got %v, want Corrupt with the limit", limit-1, err)
		}
	})
}

// An endlessReader returns start, and then fill repeatedly. It counts the bytes read.
type endlessReader struct {
	start string
	fill  byte
	read  int
}

func (r *endlessReader) Read(p []byte) (int, error) {
	n := copy(p, r.start)
	r.start = r.start[n:]
	for i := n; i < len(p); i++ {
		p[i] = r.fill
	}
	r.read += len(p)
	return len(p), nil
}

func TestOversizedEventIsRejectedEarly(t *testing.T) {
	const limit = 1 << 20
	cases := []struct {
		name    string
		f       Framer
		start   string
		fill    byte
		maxRead int
	}{
		{"string", JSON{}, `{"type":"`, 'x', limit + bufferSize},
		{"space", JSON{}, `{`, ' ', limit + bufferSize},
		{"prefix", LengthPrefixed{}, "\xff\xff\xff\xff", 'x', bufferSize},
		{"prefix above the limit", LengthPrefixed{}, "\x00\x10\x00\x01", 'x', bufferSize},
		{"line", SSE{}, "data: ", 'x', limit + bufferSize},
		{"comment", SSE{}, ":", 'x', limit + bufferSize},
		{"element", JSONSeq{}, "\x1e{", ' ', limit + bufferSize},
		{"separators", JSONSeq{}, "", '\x1e', limit + bufferSize},
		{"text", CBORSeq{}, "\xa2\x64type\x7b\xff\xff\xff\xff\xff\xff\xff\xff", 'x', bufferSize},
		{"text of 4 GiB", CBORSeq{}, "\xa2\x64type\x7a\xff\xff\xff\xff", 'x', bufferSize},
		{"bytes in chunks", CBORSeq{}, "\xa2\x64type\x5f", '\x41', limit + bufferSize},
		{"array", CBORSeq{}, "\x9b\xff\xff\xff\xff\xff\xff\xff\xff", 0, bufferSize},
		{"map", CBORSeq{}, "\xbb\x80\x00\x00\x00\x00\x00\x00\x00", 0, bufferSize},
		{"array without end", CBORSeq{}, "\x9f", '\xf5', limit + bufferSize},
		{"bignum", CBORSeq{}, "\x81\xc2\x5a\x00\x0f\x00\x00", 'x', limit + bufferSize},
		{"tags", CBORSeq{}, "\xd9\xd9\xf7", '\xc4', limit + bufferSize},
	}
	for _, c := range cases {
		t.Run(strings.TrimPrefix(fmt.Sprintf("%T", c.f), "framing.")+"/"+c.name, func(t *testing.T) {
			r := &endlessReader{start: c.start, fill: c.fill}
			d := c.f.NewDecoder(r, limit)
			allocated := allocatedBy(func() {
				if _, err := d.Decode(); !errors.Is(err, listwatch.Corrupt) {
					t.Errorf("got %v, want Corrupt", err)
				}
			})
			if r.read > c.maxRead {
				t.Errorf("read %d bytes, want at most %d", r.read, c.maxRead)
			}
			// A buffer that grows with an event is reallocated several times, and the sum of
			// its sizes is a few times the limit.
			maxAllocated := uint64(64 << 10)
			if c.maxRead > bufferSize {
				maxAllocated = 8 * limit
			}
			if allocated > maxAllocated {
				t.Errorf("allocated %d bytes for %d bytes of input, want at most %d", allocated, r.read, maxAllocated)
			}
		})
	}
}

// Memory must be allocated only as bytes arrive, even for a length within the limit.
func TestMemoryGrowsWithReceivedBytes(t *testing.T) {
	for name, stream := range map[string]struct {
		f    Framer
		text string
	}{
		"Prefixed": {LengthPrefixed{}, "\x00\xf0\x00\x00{"},
		"CBORSeq":  {CBORSeq{}, "\xa1\x64type\x7a\x00\xf0\x00\x00{"},
	} {
		d := stream.f.NewDecoder(strings.NewReader(stream.text), 0)
		if allocated := allocatedBy(func() {
			if _, err := d.Decode(); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: got %v, want ErrUnexpectedEOF", name, err)
			}
		}); allocated > 64<<10 {
			t.Errorf("%s: allocated %d bytes", name, allocated)
		}
	}
}

// allocatedBy returns the number of bytes that f allocates.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Conformance case limit/json-depth.
func TestDepthIsLimited(t *testing.T) {
	nested := func(depth int) []byte {
		return []byte(`{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + "}")
	}
	eachFramer(t, func(t *testing.T, f Framer) {
		deepest := WatchEvent{Type: "ADDED", Object: nested(maxDepth - 1)} // the event adds one
		stream, _ := encode(t, f, deepest)
		got, err := f.NewDecoder(bytes.NewReader(stream), 0).Decode()
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, f, deepest, got)

		tooDeep := nested(100_000)
		e := WatchEvent{Type: "ADDED", Object: tooDeep}
		if f == Framer(CBORSeq{}) {
			if _, err := f.AppendEvent(nil, e); !errors.Is(err, listwatch.Invalid) {
				t.Errorf("got %v, want Invalid", err)
			}
			stream = append([]byte("\xa2\x64type\x61A\x66object"), bytes.Repeat([]byte{0x81}, 100_000)...)
		} else {
			stream, _ = encode(t, f, e)
		}
		if _, err := f.NewDecoder(bytes.NewReader(stream), 0).Decode(); !errors.Is(err, listwatch.Corrupt) ||
			!strings.Contains(err.Error(), "exceeded max depth") {
			t.Errorf("got %v, want Corrupt with the maximum depth", err)
		}
	})
}

func TestEncodersDoNotAllocate(t *testing.T) {
	e := WatchEvent{Type: "MODIFIED", Object: object1KiB(), Version: 12345}
	eachFramer(t, func(t *testing.T, f Framer) {
		dst := make([]byte, 0, 4096)
		appends := map[string]func([]byte, WatchEvent) ([]byte, error){"event": f.AppendEvent}
		if m, ok := f.(MessageFramer); ok {
			appends["message"] = m.AppendMessage
		}
		for name, appendTo := range appends {
			if n := testing.AllocsPerRun(100, func() {
				if _, err := appendTo(dst, e); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations, want 0", name, n)
			}
		}
	})
	dst := make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() { SSE{}.AppendHeartbeat(SSE{}.AppendOpening(dst), 42) }); n != 0 {
		t.Errorf("heartbeat: %v allocations, want 0", n)
	}
}

// object1KiB returns an object of 1 KiB with the members that a store sets.
func object1KiB() []byte {
	object := `{"apiVersion":"example.com/v1","kind":"Flag","metadata":{"name":"flag-000001","namespace":"default","uid":"0b7ad9de-2a3e-4f8e-9c5a-0c1d2e3f4a5b",` +
		`"resourceVersion":"1234567","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web","tier":"front","zone":"eu-1"}},` +
		`"spec":{"enabled":true,"rollout":12.5,"weights":[1,2,3,4,5,6,7,8],"owner":"team-a","note":"é \"quoted\" and \u00fc\n"},"status":{"seen":[{"at":1700000000,"by":"node-1"},{"at":1700000001,"by":"node-2"}],"pad":"`
	return []byte(object + strings.Repeat("x", 1024-len(object)-3) + `"}}`)
}
