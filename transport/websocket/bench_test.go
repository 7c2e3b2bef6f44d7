package websocket

import (
	"fmt"
	"io"
	"testing"

	"github.com/listwatch/listwatch/internal/framecache"
	"github.com/listwatch/listwatch/transport"
)

// BenchmarkSend measures what one event of 1 KiB costs the process when a batch is written to one client over loopback: the writes,
// and a reader that throws the bytes away.
func BenchmarkSend(b *testing.B) {
	for _, backend := range backends {
		for _, secure := range []bool{false, true} {
			for _, batch := range []int{1, 16} {
				b.Run(fmt.Sprintf("backend=%s/tls=%v/batch=%d", backend, secure, batch), func(b *testing.B) {
					benchmarkSend(b, backend, secure, batch, 1<<10)
				})
			}
		}
	}
}

// BenchmarkSendLarge measures the same for events of 16 KiB, which go out as a vector where that pays.
func BenchmarkSendLarge(b *testing.B) {
	for _, backend := range backends {
		b.Run("backend="+backend.String(), func(b *testing.B) { benchmarkSend(b, backend, false, 16, 16<<10) })
	}
}

func benchmarkSend(b *testing.B, backend Backend, secure bool, batch, size int) {
	s := tcp(b, backend, secure)
	p, stream := s.watch()
	go io.Copy(io.Discard, p.r)
	defer stream.Sender.Close(transport.Abort)
	frame, err := stream.Encoder.Event(event(1, size).WithFrames(new(framecache.Frames)))
	if err != nil {
		b.Fatal(err)
	}
	frames := make([][]byte, batch)
	b.ReportAllocs()
	b.SetBytes(int64(batch * len(frame)))
	for b.Loop() {
		for i := range frames {
			frames[i] = frame
		}
		if err := stream.Sender.Send(frames); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/event")
}
