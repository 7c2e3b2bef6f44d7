package websocket

import (
	"fmt"
	"io"
	"testing"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// BenchmarkSend measures the cost of an event of 1 KiB in a batch that is written to one
// client over loopback. The result includes the client, which discards the bytes.
func BenchmarkSend(b *testing.B) {
	for _, secure := range []bool{false, true} {
		for _, batch := range []int{1, 16} {
			b.Run(fmt.Sprintf("tls=%v/batch=%d", secure, batch), func(b *testing.B) {
				benchmarkSend(b, secure, batch, 1<<10)
			})
		}
	}
}

// BenchmarkSendLarge is like BenchmarkSend, with events of 16 KiB, which are written as a vector.
func BenchmarkSendLarge(b *testing.B) { benchmarkSend(b, false, 16, 16<<10) }

func benchmarkSend(b *testing.B, secure bool, batch, size int) {
	s := startOnSocket(b, secure)
	p, stream := s.watch()
	go io.Copy(io.Discard, p.r)
	defer stream.Sender.Close(transport.Abort)
	frame, err := stream.Encoder.Frame(framing.FromEvent(testEvent(1, size)))
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
