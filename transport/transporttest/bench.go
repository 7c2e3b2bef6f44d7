package transporttest

import (
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// BenchmarkSend measures Send with one and with sixteen events of 1 KiB, over a socket, to a client
// that discards the data. An operation is one Send. The client uses the given protocols. The client
// runs in the same process, so the result includes its CPU time.
func BenchmarkSend(b *testing.B, c ServerConfig, protocols *http.Protocols) {
	for _, secure := range []bool{false, true} {
		for _, n := range []int{1, 16} {
			b.Run("tls="+strconv.FormatBool(secure)+"/batch="+strconv.Itoa(n), func(b *testing.B) {
				c.TLS, c.Sockets = secure, true
				benchmarkSend(b, StartServer(b, c), protocols, n)
			})
		}
	}
}

func benchmarkSend(b *testing.B, server *TestServer, protocols *http.Protocols, n int) {
	client := server.Network.HTTPTransport(protocols)
	defer client.CloseIdleConnections()
	resp, err := (&http.Client{Transport: client}).Get(server.URL.String())
	if err != nil {
		b.Fatal(err)
	}
	s := <-server.Streams
	read := make(chan int64)
	go func() {
		m, _ := io.Copy(io.Discard, resp.Body)
		read <- m
	}()
	var frames [][]byte
	for range n {
		frame, err := s.Encoder.Frame(framing.FromEvent(Event(1, 1<<10)))
		if err != nil {
			b.Fatal(err)
		}
		frames = append(frames, frame)
	}
	b.SetBytes(int64(n * len(frames[0])))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Sender.Send(frames); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
	s.Sender.Close(transport.Finished)
	if m := <-read; m < int64(b.N) {
		b.Errorf("the client read %d bytes, want at least %d", m, b.N)
	}
	resp.Body.Close()
}
