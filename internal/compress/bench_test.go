package compress

import (
	"bytes"
	"io"
	"testing"
)

// BenchmarkCompress measures the cost of compressing an event, which is paid once for all
// streams. The event is 2 KB of JSON, half of it numbers.
func BenchmarkCompress(b *testing.B) {
	p := events()[7][:2000]
	for name, f := range map[string]func(dst, p []byte) []byte{
		Gzip: AppendDeflate, Zstd: AppendZstd,
		"sum": AppendChecksum,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = f(dst[:0], p)
			}
			b.ReportMetric(float64(len(dst)), "B/event")
		})
	}
}

// BenchmarkAdd measures the cost that each gzip stream pays for an event.
func BenchmarkAdd(b *testing.B) {
	part := AppendChecksum(nil, events()[7][:2000])
	var s Checksum
	for b.Loop() {
		s.Add(part)
	}
}

// BenchmarkDecompress measures the cost of an event for the reader of a stream.
func BenchmarkDecompress(b *testing.B) {
	p := events()[7][:2000]
	for _, c := range codecs() {
		b.Run(c.name, func(b *testing.B) {
			r, err := NewReader(c.name, &endlessReader{header: []byte(c.header()), part: c.append(c, nil, p)})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			got := make([]byte, len(p))
			for b.Loop() {
				if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, p) {
					b.Fatalf("got %q, %v", got, err)
				}
			}
		})
	}
}

// An endlessReader returns a header, and then the same part repeatedly.
type endlessReader struct {
	header, part []byte
	rest         []byte
}

func (r *endlessReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.rest, r.header = append(r.header, r.part...), nil
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
