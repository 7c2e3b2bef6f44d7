package memnet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
)

func TestConnPassesNettest(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		a, b := Pipe()
		return a, b, func() { a.Close(); b.Close() }, nil
	})
}

func TestListenerConnectsAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := Listen(), Listen()
		if l.Addr().String() == other.Addr().String() {
			t.Fatalf("two listeners have the address %v", l.Addr())
		}
		c, err := l.Dial(t.Context(), "tcp", "anywhere:1")
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := s.RemoteAddr().String(), c.LocalAddr().String(); got != want {
			t.Errorf("got remote address %v, want %v", got, want)
		}
		waiting, _ := l.Dial(t.Context(), "", "")
		l.Close()
		if _, err := l.Dial(t.Context(), "", ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial after close: %v, want %v", err, syscall.ECONNREFUSED)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v, want %v", err, net.ErrClosed)
		}
		if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read of a connection that was never accepted: %v, want %v", err, syscall.ECONNRESET)
		}
		wantEcho(t, c, s)
	})
}

func TestDialBlocksOnAFullBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		for range backlog {
			if _, err := l.Dial(t.Context(), "", ""); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Dial(ctx, "", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestWriteBlocksWhileTheBufferIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		written := make(chan error)
		data := bytes.Repeat([]byte("x"), DefaultBuffer+1)
		go func() {
			_, err := a.Write(data)
			written <- err
		}()
		synctest.Wait()
		select {
		case <-written:
			t.Fatal("Write returned before the buffer had room")
		default:
		}
		if _, err := io.ReadFull(b, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
	})
}

func TestWriteDeadlineUsesFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := Pipe()
		start := time.Now()
		a.SetWriteDeadline(start.Add(time.Minute))
		n, err := a.Write(make([]byte, 2*DefaultBuffer))
		if n != DefaultBuffer || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("wrote %d bytes, %v after %v; want %d, the deadline, after 1m", n, err,
				time.Since(start), DefaultBuffer)
		}
		if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
			t.Errorf("got %v, want a timeout", err)
		}
	})
}

func TestAReplacedDeadlineHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		a.SetReadDeadline(time.Now().Add(time.Second))
		a.SetReadDeadline(time.Time{})
		time.Sleep(time.Hour)
		wantEcho(t, b, a)
	})
}

func TestCloseWriteEndsOneDirection(t *testing.T) {
	a, b := Pipe()
	a.Write([]byte("last"))
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(b); string(got) != "last" || err != nil {
		t.Errorf("got %q, %v; want all bytes and a clean end", got, err)
	}
	wantEcho(t, b, a)
	if _, err := a.Write([]byte("more")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write after CloseWrite: %v, want %v", err, syscall.EPIPE)
	}
}

// A Read that Close has interrupted must not be followed by a successful Write, even before Close
// returns. Otherwise the interrupted reader of a tls.Conn could write an alert, and the peer would
// see a clean end instead of a cut.
func TestNothingIsWrittenAfterCloseBegins(t *testing.T) {
	a, _ := Pipe()
	a.close() // the first two steps of Close
	a.in.closeReader()
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

func TestPeerTellsACloseFromAReset(t *testing.T) {
	tests := []struct {
		name string
		end  func(a, b *Conn)
		want error
	}{
		{"close", func(a, _ *Conn) { a.Close() }, io.EOF},
		{"reset", func(a, _ *Conn) { a.Reset() }, syscall.ECONNRESET},
		{"close with SetLinger(0)", func(a, _ *Conn) { a.SetLinger(0); a.Close() }, syscall.ECONNRESET},
		{"close with unread bytes", func(a, b *Conn) { b.Write([]byte("x")); a.Close() }, syscall.ECONNRESET},
		{"write after close", func(a, b *Conn) { a.Close(); b.Write([]byte("x")) }, syscall.ECONNRESET},
	}
	for _, tt := range tests {
		a, b := Pipe()
		tt.end(a, b)
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, tt.want) {
			t.Errorf("%s: the peer got %v, want %v", tt.name, err, tt.want)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the closed end got %v, want %v", tt.name, err, net.ErrClosed)
		}
	}
}

func TestStallDelaysBytesAndTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		a.Stall(true)
		a.Write([]byte("late"))
		a.Close()
		b.SetReadDeadline(time.Now().Add(time.Hour))
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v on a stalled network, want the deadline", err)
		}
		b.SetReadDeadline(time.Time{})
		a.Stall(false)
		if got, err := io.ReadAll(b); string(got) != "late" || err != nil {
			t.Errorf("got %q, %v; want all bytes and a clean end", got, err)
		}
	})
}

func TestHTTP2OverTLSRunsInABubble(t *testing.T) {
	ts := httptest.NewTLSServer(nil)
	certificates := ts.TLS.Certificates
	ts.Close()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		srv := &http.Server{Handler: hello, TLSConfig: &tls.Config{Certificates: certificates}}
		done := make(chan error)
		go func() { done <- srv.ServeTLS(l, "", "") }()
		client := &http.Transport{
			DialContext: l.Dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		}
		resp, err := (&http.Client{Transport: client}).Get("https://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "hello" || err != nil || resp.ProtoMajor != 2 {
			t.Errorf("got %q, %v over %s", body, err, resp.Proto)
		}
		client.CloseIdleConnections()
		srv.Close()
		<-done
	})
}

func wantEcho(t *testing.T, from, to net.Conn) {
	t.Helper()
	if _, err := from.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(to, got); err != nil || string(got) != "ping" {
		t.Fatalf("read %q, %v", got, err)
	}
}
