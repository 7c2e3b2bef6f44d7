package compress

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// A codec writes a stream in a content coding as a server does.
type codec struct {
	name   string
	sum    Checksum
	append func(c *codec, dst, p []byte) []byte
}

func codecs() []*codec {
	return []*codec{
		{name: Gzip, append: func(c *codec, dst, p []byte) []byte {
			c.sum.Add(AppendChecksum(nil, p))
			return AppendDeflate(dst, p)
		}},
		{name: Zstd, append: func(_ *codec, dst, p []byte) []byte { return AppendZstd(dst, p) }},
	}
}

func (c *codec) header() string {
	if c.name == Gzip {
		return GzipHeader
	}
	return ""
}

func (c *codec) trailer() []byte {
	if c.name == Gzip {
		return c.sum.AppendTrailer(nil)
	}
	return nil
}

// events returns events of many kinds: empty, small, around MinSize, text, random bytes, and
// larger than a window.
var events = sync.OnceValue(func() [][]byte {
	noise := make([]byte, 3000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	var text strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&text, `{"n":%d},`, i)
	}
	return [][]byte{
		{},
		[]byte("\n"), bytes.Repeat([]byte("a"), MinSize-1), bytes.Repeat([]byte("a"), MinSize), noise, noise[:MinSize],
		[]byte(text.String()[:2000]), []byte(text.String()), []byte(text.String()[:2000]), []byte("end"),
	}
})

// A strictReader returns the bytes of buf, and then err. If err is nil, the test fails when
// Read is called with an empty buf.
type strictReader struct {
	t   *testing.T
	buf bytes.Buffer
	err error
}

func (r *strictReader) Read(p []byte) (int, error) {
	if r.buf.Len() == 0 {
		if r.err == nil {
			r.t.Fatal("Read is called before all data was returned")
		}
		return 0, r.err
	}
	return r.buf.Read(p)
}

func TestEventIsReadBeforeTheNextArrives(t *testing.T) {
	for _, c := range codecs() {
		in := &strictReader{t: t}
		r, err := NewReader(c.name, in)
		if err != nil {
			t.Fatal(err)
		}
		in.buf.WriteString(c.header())
		for i, e := range events() {
			in.buf.Write(c.append(c, nil, e))
			got := make([]byte, len(e))
			if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, e) {
				t.Fatalf("%s: event %d of %d bytes: %v", c.name, i, len(e), err)
			}
			if r.Incomplete() && len(e) > 0 {
				t.Errorf("%s: event %d: incomplete after the event was read", c.name, i)
			}
		}
		in.buf.Write(c.trailer())
		in.err = io.EOF
		if n, err := r.Read(make([]byte, 9)); n != 0 || err != io.EOF {
			t.Errorf("%s: %d, %v at the end", c.name, n, err)
		}
	}
}

func TestCompressedEventsFitAnywhereInAStream(t *testing.T) {
	for _, c := range codecs() {
		var shared [][]byte
		for _, e := range events() {
			shared = append(shared, c.append(c, nil, e))
		}
		r := rand.New(rand.NewPCG(3, 4))
		c.sum = Checksum{}
		stream := []byte(c.header())
		var want []byte
		for range 50 {
			i := r.IntN(len(shared))
			stream = append(stream, shared[i]...)
			want = append(want, events()[i]...)
			c.sum.Add(AppendChecksum(nil, events()[i]))
		}
		stream = append(stream, c.trailer()...)
		got, err := decode(c.name, bytes.NewReader(stream))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %d bytes, want %d; %v", c.name, len(got), len(want), err)
		}
	}
}

func decode(name string, r io.Reader) ([]byte, error) {
	c, err := NewReader(name, r)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(c)
}

func TestGzipStreamIsOneMember(t *testing.T) {
	stream, want, sum := []byte(GzipHeader), []byte(nil), Checksum{}
	for _, e := range events() {
		stream, want = AppendDeflate(stream, e), append(want, e...)
		sum.Add(AppendChecksum(nil, e))
	}
	stream = sum.AppendTrailer(stream)
	z, err := gzip.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	got, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, want %d; %v", len(got), len(want), err)
	}
	if sum.crc != crc32.ChecksumIEEE(want) || sum.size != uint32(len(want)) {
		t.Errorf("the checksum is %x of %d bytes, want %x of %d", sum.crc, sum.size, crc32.ChecksumIEEE(want),
			len(want))
	}
}

func TestDeflateBlocksFitRFC7692(t *testing.T) {
	for _, e := range events() {
		blocks := AppendDeflate(nil, e)
		if !bytes.HasSuffix(blocks, []byte(SyncMarker)) {
			t.Fatalf("%d bytes: the blocks end with %x", len(e), blocks[len(blocks)-4:])
		}
		// The receiver appends the marker again (section 7.2.2). The test also appends a
		// final block, so that the reader finds the end.
		z := flate.NewReader(bytes.NewReader(append(blocks, 3, 0)))
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, e) {
			t.Errorf("got %d bytes, want %d; %v", len(got), len(e), err)
		}
	}
}

func TestAppendKeepsThePrefix(t *testing.T) {
	p := bytes.Repeat([]byte("listwatch "), 100)
	for name, f := range map[string]func(dst, p []byte) []byte{
		"blocks": AppendDeflate, "zstd": AppendZstd,
		"sum": AppendChecksum,
	} {
		if got := f([]byte("before"), p); !bytes.HasPrefix(got, []byte("before")) || !bytes.Equal(got[6:], f(nil, p)) {
			t.Errorf("%s: got %.20q", name, got)
		}
	}
}

func TestSmallEventsGrowLittle(t *testing.T) {
	for n := range MinSize {
		p := bytes.Repeat([]byte{'x'}, n)
		if got := len(AppendDeflate(nil, p)); got > n+10 {
			t.Errorf("%d bytes became blocks of %d", n, got)
		}
		if got := len(AppendZstd(nil, p)); got > n+9 {
			t.Errorf("%d bytes became a frame of %d", n, got)
		}
	}
}

// member returns p as a gzip member written by the standard library.
func member(p string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, p)
	z.Close()
	return b.Bytes()
}

// Conformance case comp/multi-member.
func TestMemberIsReadBeforeTheNextArrives(t *testing.T) {
	in := &strictReader{t: t}
	r, err := NewReader(Gzip, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		want := strings.Repeat(fmt.Sprint(i), i) // the first is empty
		in.buf.Write(member(want))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Fatalf("member %d: got %q, %v", i, got, err)
		}
	}
	in.err = io.EOF
	if n, err := r.Read(make([]byte, 9)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v at the end", n, err)
	}
}

func TestTruncationIsNotACleanEnd(t *testing.T) {
	for _, c := range codecs() {
		stream := []byte(c.header())
		ends := map[int]bool{0: true}
		for _, e := range []string{"tiny", strings.Repeat("large enough ", 50)} {
			stream = c.append(c, stream, []byte(e))
			ends[len(stream)] = c.name == Zstd
		}
		stream = append(stream, c.trailer()...)
		ends[len(stream)] = true
		for n := range len(stream) + 1 {
			want := io.ErrUnexpectedEOF
			if ends[n] {
				want = nil
			}
			for _, r := range []io.Reader{
				bytes.NewReader(stream[:n]),
				iotest.OneByteReader(bytes.NewReader(stream[:n])),
			} {
				if _, err := decode(c.name, r); err != want {
					t.Errorf("%s: truncated at %d of %d: %v, want %v", c.name, n, len(stream), err, want)
				}
			}
		}
	}
}

func TestReaderReturnsErrorsUnchanged(t *testing.T) {
	for _, c := range codecs() {
		stream := c.append(c, []byte(c.header()), bytes.Repeat([]byte("x"), 3*MinSize))
		for _, n := range []int{0, 3, len(stream) - 2, len(stream)} {
			r := io.MultiReader(bytes.NewReader(stream[:n]), iotest.ErrReader(io.ErrClosedPipe))
			if _, err := decode(c.name, r); err != io.ErrClosedPipe {
				t.Errorf("%s: broken after %d bytes: %v", c.name, n, err)
			}
		}
	}
}

func TestInvalidDataIsACorruptError(t *testing.T) {
	sum := Checksum{}
	sum.Add(AppendChecksum(nil, []byte("other")))
	for what, stream := range map[string][]byte{
		"gzip not gzip":      []byte(`{"type":"ADDED"}` + "\n"),
		"gzip wrong sum":     sum.AppendTrailer(AppendDeflate([]byte(GzipHeader), []byte("event"))),
		"gzip bad block":     append([]byte(GzipHeader), 0xff, 0xff, 0xff),
		"gzip garbage after": append(member("x"), `garbage and more`...),
		"zstd not zstd":      []byte(`{"type":"ADDED"}` + "\n"),
		// a window of 16 MiB, which is more than RFC 9659 allows
		"zstd large window":  {0x28, 0xb5, 0x2f, 0xfd, 0, 14 << 3, 1, 0, 0},
		"zstd large content": binary.LittleEndian.AppendUint64([]byte{0x28, 0xb5, 0x2f, 0xfd, 3<<6 | 1<<5}, 1<<40),
	} {
		_, err := decode(what[:4], bytes.NewReader(stream))
		if e, ok := errors.AsType[*CorruptError](err); !ok || e.Coding != what[:4] {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := NewReader("br", nil); err == nil {
		t.Error("NewReader accepts an unknown coding")
	}
}

// FuzzReader reads arbitrary data in one piece and byte by byte. The results must be equal.
func FuzzReader(f *testing.F) {
	for _, c := range codecs() {
		stream := []byte(c.header())
		for _, e := range events()[:6] {
			stream = c.append(c, stream, e)
		}
		f.Add(c.name == Zstd, append(stream, c.trailer()...))
	}
	f.Add(false, append(member("a"), member("b")...))
	f.Fuzz(func(t *testing.T, isZstd bool, data []byte) {
		name := Gzip
		if isZstd {
			name = Zstd
		}
		const most = 1 << 20
		read := func(r io.Reader) (string, error) {
			c, err := NewReader(name, r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(io.LimitReader(c, most))
			return string(got), err
		}
		whole, wholeErr := read(bytes.NewReader(data))
		bytewise, byteErr := read(iotest.OneByteReader(bytes.NewReader(data)))
		if whole != bytewise || (wholeErr == nil) != (byteErr == nil) {
			t.Errorf("%d bytes, %v; byte by byte %d bytes, %v", len(whole), wholeErr, len(bytewise), byteErr)
		}
	})
}

// FuzzRoundTrip compresses arbitrary data and decompresses it.
func FuzzRoundTrip(f *testing.F) {
	for _, e := range events()[:6] {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, c := range codecs() {
			stream := c.append(c, []byte(c.header()), p)
			stream = c.append(c, stream, p)
			got, err := decode(c.name, bytes.NewReader(append(stream, c.trailer()...)))
			if err != nil || !bytes.Equal(got, append(p[:len(p):len(p)], p...)) {
				t.Errorf("%s: %d bytes became %d, %v", c.name, 2*len(p), len(got), err)
			}
		}
	})
}
