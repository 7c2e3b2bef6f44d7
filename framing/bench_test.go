package framing

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkEncode appends an event with an object of 1 KiB to a buffer of sufficient
// capacity.
func BenchmarkEncode(b *testing.B) {
	e := WatchEvent{Type: "MODIFIED", Object: object1KiB(), Version: 1234567}
	for _, f := range allFramers {
		b.Run(strings.TrimPrefix(fmt.Sprintf("%T", f), "framing."), func(b *testing.B) {
			dst := make([]byte, 0, 4096)
			b.SetBytes(int64(len(e.Object)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.AppendEvent(dst, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecode decodes events with objects of 1 KiB from one endless stream.
func BenchmarkDecode(b *testing.B) {
	e := WatchEvent{Type: "MODIFIED", Object: object1KiB(), Version: 1234567}
	for _, f := range allFramers {
		b.Run(strings.TrimPrefix(fmt.Sprintf("%T", f), "framing."), func(b *testing.B) {
			frame, _ := encode(b, f, e)
			d := f.NewDecoder(&repeatReader{data: bytes.Repeat(frame, 64)}, 0)
			b.SetBytes(int64(len(e.Object)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodeMessage decodes a message with an object of 1 KiB.
func BenchmarkDecodeMessage(b *testing.B) {
	e := WatchEvent{Type: "MODIFIED", Object: object1KiB()}
	for _, f := range []MessageFramer{JSON{}, CBORSeq{}} {
		b.Run(strings.TrimPrefix(fmt.Sprintf("%T", f), "framing."), func(b *testing.B) {
			message, err := f.AppendMessage(nil, e)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(e.Object)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.DecodeMessage(message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEvent converts a decoded event with an object of 1 KiB to a listwatch.Event.
func BenchmarkEvent(b *testing.B) {
	e := WatchEvent{Type: "MODIFIED", Object: object1KiB()}
	b.SetBytes(int64(len(e.Object)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Event(); err != nil {
			b.Fatal(err)
		}
	}
}

// A repeatReader returns data repeatedly.
type repeatReader struct {
	data []byte
	at   int
}

func (r *repeatReader) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}
