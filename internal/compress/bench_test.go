package compress

import (
	"bytes"
	"io"
	"testing"
)

// BenchmarkCompress measures what one event costs once, for all streams: 2 KB of JSON, half of it numbers.
func BenchmarkCompress(b *testing.B) {
	p := events()[7][:2000]
	for name, f := range map[string]func(dst, p []byte) []byte{Gzip: AppendDeflate, Zstd: AppendZstd, "sum": AppendChecksum} {
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

// BenchmarkAdd measures what one event costs each stream of gzip.
func BenchmarkAdd(b *testing.B) {
	part := AppendChecksum(nil, events()[7][:2000])
	var s Checksum
	for b.Loop() {
		s.Add(part)
	}
}

// BenchmarkDecompress measures what one event of a stream costs who reads it.
func BenchmarkDecompress(b *testing.B) {
	p := events()[7][:2000]
	for _, c := range codecs() {
		b.Run(c.name, func(b *testing.B) {
			r, err := NewReader(c.name, &endless{head: []byte(c.head()), part: c.append(c, nil, p)})
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

// An endless stream has the same part again and again.
type endless struct {
	head, part []byte
	rest       []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		e.rest, e.head = append(e.head, e.part...), nil
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
