package connio

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/internal/testhttp"
)

func TestWriteBatchedKeepsBytesAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOf(rapid.OneOf(rapid.IntRange(0, 2000), rapid.IntRange(0, 3*MaxWrite))).Draw(t, "sizes")
		var frames [][]byte
		var want []byte
		for i, n := range sizes {
			frames = append(frames, bytes.Repeat([]byte{byte(i)}, n))
			want = append(want, frames[i]...)
		}
		var got []byte
		writes := 0
		err := WriteBatched(frames, func(p []byte) error {
			if len(p) == 0 || len(p) > MaxWrite {
				t.Fatalf("got a write of %d bytes, want 1 to %d", len(p), MaxWrite)
			}
			got = append(got, p...)
			writes++
			return nil
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("wrote %d bytes, want %d; %v", len(got), len(want), err)
		}
		if limit := 3*(len(want)/MaxWrite) + 2; writes > limit {
			t.Fatalf("%d bytes took %d writes, want at most %d", len(want), writes, limit)
		}
	})
}

func TestWriteBatchedStopsAtTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	for _, frames := range [][][]byte{
		{make([]byte, 5*MaxWrite)},
		{make([]byte, 5*MaxWrite), {1}},
		{{1}, make([]byte, MaxWrite)},
	} {
		writes := 0
		err := WriteBatched(frames, func([]byte) error { writes++; return broken })
		if err != broken || writes != 1 {
			t.Errorf("got %v after %d writes", err, writes)
		}
	}
}

func TestWriteDeadlineMovesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moved := 0
		d := WriteDeadline{Timeout: time.Second, SetFunc: func(at time.Time) error {
			moved++
			if wait := time.Until(at); wait < time.Second || wait > 2*time.Second {
				t.Errorf("the deadline is %v away, want 1s to 2s", wait)
			}
			return nil
		}}
		for range 1000 {
			d.Arm()
			time.Sleep(10 * time.Millisecond)
		}
		if moved > 10 {
			t.Errorf("the deadline was moved %d times in 10s, want at most 10", moved)
		}
		off := WriteDeadline{
			Timeout: -1,
			SetFunc: func(time.Time) error { t.Error("a deadline without a timeout was set"); return nil },
		}
		off.Arm()
	})
}

type wrappedTCP struct{ *net.TCPConn }

func (c wrappedTCP) TCP() *net.TCPConn { return c.TCPConn }

func TestTCPFindsTheWrappedConnection(t *testing.T) {
	tcp := new(net.TCPConn)
	for _, c := range []net.Conn{tcp, wrappedTCP{tcp}} {
		if got, ok := TCP(c); got != tcp || !ok {
			t.Errorf("%T: got %p, %v, want %p", c, got, ok, tcp)
		}
	}
	if got, ok := TCP(struct{ net.Conn }{tcp}); ok {
		t.Errorf("a wrapper without the method TCP: got %p, want none", got)
	}
}

func TestVectorsReachASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		client, conn := memnet.Pipe()
		w := NewFrameWriter(conn, timeout)
		// Use vectors although a memnet.Conn has no writev: net.Buffers then writes the frames one
		// by one.
		w.vector = true
		var frames [][]byte
		var want []byte
		for i := range 3*maxVector - 5 {
			frames = append(frames, bytes.Repeat([]byte{byte(i)}, largeFrame+i))
			want = append(want, frames[i]...)
		}
		sent := make(chan error)
		go func() { sent <- w.WriteFrames(frames) }()
		got := make([]byte, len(want))
		for n := 0; n < len(got); {
			time.Sleep(timeout / 2)
			m, err := client.Read(got[n:min(len(got), n+5000)])
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		if err := <-sent; err != nil || !bytes.Equal(got, want) {
			t.Errorf("WriteFrames: equal bytes: %v, error: %v", bytes.Equal(got, want), err)
		}
	})
}

// A peer that takes a record within four timeouts makes progress; one that takes nothing does not.
func TestSlowTLSPeersAreNotCutOff(t *testing.T) {
	const timeout = 10 * time.Second
	open := func(t *testing.T) (client net.Conn, w FrameWriter) {
		raw, conn := memnet.Pipe()
		server := tls.Server(conn,
			&tls.Config{Certificates: []tls.Certificate{testhttp.Sign(new(x509.Certificate), nil)}})
		secure := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		go func() { _ = secure.Handshake() }() // ends with the handshake of the server
		if err := server.Handshake(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { raw.Close(); conn.Close() })
		return raw, NewFrameWriter(server, timeout)
	}
	t.Run("slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, w := open(t)
			var reader sync.WaitGroup
			defer reader.Wait()
			defer client.Close()
			reader.Go(func() {
				for err := error(nil); err == nil; time.Sleep(time.Second) {
					_, err = client.Read(make([]byte, 400))
				}
			})
			for range 5 {
				if err := w.WriteFrames([][]byte{make([]byte, MaxWrite)}); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	t.Run("stalled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, w := open(t)
			begin := time.Now()
			for w.Write(make([]byte, MaxWrite)) == nil {
			}
			if d := time.Since(begin); d < timeout || d > 3*timeout {
				t.Errorf("the write failed after %v, want between one and three timeouts of %v", d, timeout)
			}
		})
	})
}
