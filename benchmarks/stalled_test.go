package benchmarks

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/listwatch/listwatch/transport/h2"
)

// BenchmarkStalledReader measures the latency of a healthy reader, from Publish to the last byte
// read. It alternates between a server whose only client is that reader, and a server that also has
// clients that have stopped reading. "p99-ratio" is the 99th percentile with stalled clients,
// divided by the 99th percentile without them. "spread-without" is the ratio between successive
// runs without stalled clients: the noise of the measurement.
func BenchmarkStalledReader(b *testing.B) {
	for _, stalled := range []int{1, 50} {
		for _, c := range variants() {
			if c.clients.Kind != "chunked" && c.clients.Kind != "websocket" {
				continue // h2 readers share connections: see BenchmarkStalledStream
			}
			b.Run(fmt.Sprintf("stalled=%d/%s", stalled, c.name), func(b *testing.B) {
				benchmarkStalled(b, newHealthyReader(b, c, 0), newHealthyReader(b, c, stalled))
			})
		}
	}
}

// BenchmarkStalledStream is like BenchmarkStalledReader, but the clients are the streams of one
// HTTP/2 connection, and the latency ends when all healthy streams have the event. One of 100
// streams never refreshes its window, so the server cannot send on it.
func BenchmarkStalledStream(b *testing.B) {
	benchmarkStalled(b, newStreamReader(b, 0), newStreamReader(b, 1))
}

// benchmarkStalled compares the latencies of two readers. run publishes n events, one at a time,
// and returns their latencies.
func benchmarkStalled(b *testing.B, without, with interface{ run(n int) samples }) {
	var pairs, spread []float64
	var all samples
	const perRun = 500
	previous := 0.0
	for b.Loop() {
		alone := without.run(perRun)
		beside := with.run(perRun)
		p99 := float64(alone.quantile(0.99))
		pairs = append(pairs, float64(beside.quantile(0.99))/p99)
		if previous != 0 {
			spread = append(spread, max(p99/previous, previous/p99))
		}
		previous = p99
		all = append(all, beside...)
	}
	b.ReportMetric(median(pairs), "p99-ratio")
	if len(spread) > 0 {
		b.ReportMetric(median(spread), "spread-without")
	}
	all.report(b, "event")
}

// A healthyReader is the only client of its server that still reads. All other clients have stopped
// reading. The server runs in the same process.
type healthyReader struct {
	testing.TB
	publisher
	conn net.Conn
	buf  []byte
}

func newHealthyReader(tb testing.TB, c variant, stalled int) *healthyReader {
	h := &healthyReader{TB: tb, publisher: c.serve(tb), buf: make([]byte, 64<<10)}
	for range stalled {
		h.dial(c.clients)
	}
	// Fill the buffers of the stalled clients before measuring.
	for range 5000 * min(stalled, 1) {
		h.Publish()
	}
	h.conn = h.dial(c.clients)
	return h
}

func (h *healthyReader) dial(c clients) net.Conn {
	request, _, _ := c.request(0)
	conn, err := net.Dial("tcp", h.Addr())
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		h.Fatal(err)
	}
	head := make([]byte, 1)
	for seen := []byte{}; !bytes.HasSuffix(seen, []byte("\r\n\r\n")); seen = append(seen, head...) {
		if _, err := io.ReadFull(conn, head); err != nil {
			h.Fatal(err)
		}
	}
	return conn
}

// A streamReader reads 99 healthy streams on one connection. One more stream of the connection may
// have stalled.
type streamReader struct {
	testing.TB
	publisher
	frames *frameReader
	count  *counter
}

// newStreamReader returns a streamReader. If stalled is not zero, the window of the stream with
// this ID is never refreshed.
func newStreamReader(tb testing.TB, stalled uint32) *streamReader {
	s := &streamReader{TB: tb, publisher: startServer(tb, listen(tb, false), h2.Server{}, false), count: newCounter()}
	l := loadSpec{Clients: clients{Streams: 99, Refresh: 4 << 10}, Addr: s.Addr()}
	if stalled > 0 {
		l.Clients.Streams++
	}
	var err error
	if s.frames, err = l.newFrameReader(0, s.count); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.frames.conn.Close() })
	s.frames.stalled = stalled
	s.run(200) // fills the window of the stalled stream
	return s
}

func (s *streamReader) run(n int) (all samples) {
	for range n {
		start := time.Now()
		s.Publish()
		for want := s.count.total + 99; s.count.total < want; {
			if _, err := s.frames.next(s.count); err != nil {
				s.Fatal(err)
			}
		}
		all = append(all, time.Since(start))
	}
	return all
}

func (h *healthyReader) run(n int) (s samples) {
	for range n {
		start := time.Now()
		h.Publish()
		for {
			n, err := h.conn.Read(h.buf)
			if err != nil {
				h.Fatal(err)
			}
			if bytes.IndexByte(h.buf[:n], mark) >= 0 {
				break
			}
		}
		s = append(s, time.Since(start))
	}
	return s
}
