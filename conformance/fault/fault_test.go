package fault

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/memnet"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A fixture is a proxy between a client and a server. The test holds both ends of each
// connection.
type fixture struct {
	*Proxy
	server   net.Listener
	dial     func(context.Context) (net.Conn, error)
	injected chan Injection
}

// overMemory returns a fixture that uses in-memory connections, for a synctest bubble.
func overMemory(t *testing.T, plan Plan) *fixture {
	front, back := memnet.Listen(), memnet.Listen()
	fx := &fixture{server: back, injected: make(chan Injection, 64)}
	fx.Proxy = &Proxy{
		Listener: front, Dial: func(ctx context.Context) (net.Conn, error) { return back.Dial(ctx, "", "") },
		Plan:     plan,
		OnInject: func(x Injection) { fx.injected <- x },
	}
	fx.dial = func(ctx context.Context) (net.Conn, error) { return front.Dial(ctx, "", "") }
	fx.start(t)
	return fx
}

func overTCP(t *testing.T, plan Plan) *fixture {
	front, back := listen(t), listen(t)
	fx := &fixture{server: back, injected: make(chan Injection, 64)}
	dialer := new(net.Dialer)
	fx.Proxy = &Proxy{
		Listener: front, Plan: plan, OnInject: func(x Injection) { fx.injected <- x },
		Dial: func(ctx context.Context) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", back.Addr().String())
		},
	}
	fx.dial = func(ctx context.Context) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", front.Addr().String())
	}
	fx.start(t)
	return fx
}

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (f *fixture) start(t *testing.T) {
	done := make(chan error, 1)
	go func() { done <- f.Serve() }()
	t.Cleanup(func() {
		f.Close()
		f.server.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// connect opens a connection through the proxy and returns both ends.
func (f *fixture) connect(t *testing.T) (client, server net.Conn) {
	t.Helper()
	client, err := f.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = f.server.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server
}

func send(t *testing.T, c net.Conn, p []byte) {
	t.Helper()
	if _, err := c.Write(p); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	if _, err := io.ReadFull(c, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func always(f Fault) Plan { return func(int) Fault { return f } }

// onBothNetworks runs test in memory, within a synctest bubble, and over TCP.
func onBothNetworks(t *testing.T, plan Plan, test func(*testing.T, *fixture)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, overMemory(t, plan)) })
	})
	t.Run("tcp", func(t *testing.T) { test(t, overTCP(t, plan)) })
}

func TestProxyForwardsBytesAndCloses(t *testing.T) {
	onBothNetworks(t, nil, func(t *testing.T, fx *fixture) {
		client, server := fx.connect(t)
		random := rand.NewChaCha8([32]byte{1})
		up, down := make([]byte, 300<<10), make([]byte, 500<<10)
		random.Read(up)
		random.Read(down)
		answered := make(chan error, 1)
		go func() {
			got, err := io.ReadAll(server) // until the client calls CloseWrite
			if err == nil && !bytes.Equal(got, up) {
				err = errors.New("the server received other bytes than the client sent")
			}
			if _, writeErr := server.Write(down); writeErr != nil {
				err = writeErr
			}
			server.Close()
			answered <- err
		}()
		send(t, client, up)
		if err := client.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(client)
		if err != nil || !bytes.Equal(got, down) {
			t.Errorf("got %d bytes and %v, want %d bytes and EOF", len(got), err, len(down))
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if n := len(fx.Injections()); n != 0 {
			t.Errorf("%d kinds of faults took effect, want none", n)
		}
	})
}

func TestCutEndsAfterTheBytes(t *testing.T) {
	onBothNetworks(t, always(Fault{Kind: Cut, ServerBytes: 1000}), func(t *testing.T, fx *fixture) {
		client, server := fx.connect(t)
		go server.Write(make([]byte, 5000))
		got, err := io.ReadAll(client)
		if len(got) != 1000 || err != nil {
			t.Errorf("got %d bytes and %v, want 1000 bytes and EOF", len(got), err)
		}
		if got, want := <-fx.injected, (Injection{Cut, 0, 1000}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if n := fx.Injections()[Cut]; n != 1 {
			t.Errorf("got %d cuts, want 1", n)
		}
	})
}

func TestResetReachesBothEnds(t *testing.T) {
	onBothNetworks(t, always(Fault{Kind: Reset, ServerBytes: 3}), func(t *testing.T, fx *fixture) {
		client, server := fx.connect(t)
		send(t, server, []byte("abc"))
		<-fx.injected
		for name, c := range map[string]net.Conn{"client": client, "server": server} {
			if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: got %v, want ECONNRESET", name, err)
			}
		}
	})
}

func TestFailedDialResetsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t, nil)
		fx.server.Close()
		client, err := fx.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := io.ReadAll(client); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want ECONNRESET", err)
		}
	})
}

func TestStallReleasesDataAndCloseAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t, always(Fault{Kind: Stall, ServerBytes: 2, Duration: time.Minute}))
		client, server := fx.connect(t)
		start := time.Now()
		send(t, server, []byte("abcd"))
		receive(t, client, 2)
		if delay := time.Since(start); delay != 0 {
			t.Errorf("the first bytes were delayed by %v, want no delay", delay)
		}
		server.(*memnet.Conn).CloseWrite() // the close arrives after the bytes
		if got := receive(t, client, 2); string(got) != "cd" || time.Since(start) != time.Minute {
			t.Errorf("got %q after %v, want cd after 1m0s", got, time.Since(start))
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
		if fx.Injections()[Stall] != 1 {
			t.Errorf("got injections %v, want one stall", fx.Injections())
		}
	})
}

func TestStallWithoutTrafficIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t, always(Fault{Kind: Stall, Duration: time.Minute}))
		client, server := fx.connect(t)
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		send(t, server, []byte("a"))
		receive(t, client, 1)
		if len(fx.Injections()) != 0 {
			t.Errorf("got injections %v, want none", fx.Injections())
		}
	})
}

func TestHalfOpenDropsDataAndHidesClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t, always(Fault{Kind: HalfOpen, ServerBytes: 1}))
		client, server := fx.connect(t)
		send(t, server, []byte("abc"))
		receive(t, client, 1)
		<-fx.injected
		send(t, client, []byte("hello?"))
		fx.Heal() // does not restore dropped data
		server.Close()
		client.SetReadDeadline(time.Now().Add(time.Hour))
		if n, err := client.Read(make([]byte, 1)); n != 0 ||
			!errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
			t.Errorf("got %d bytes and %v, want a timeout after an hour", n, err)
		}
	})
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func TestDripForwardsChunksWithDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t,
			always(Fault{Kind: Drip, ChunkSize: 2, ChunkDelay: time.Second, Duration: 3500 * time.Millisecond}))
		client, server := fx.connect(t)
		synctest.Wait()
		start := time.Now()
		send(t, server, []byte("abcdefghij"))
		buf := make([]byte, 10)
		var got []string
		for n := 0; n < 10; {
			k, err := client.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			n += k
			got = append(got, time.Since(start).String()+" "+string(buf[:k]))
		}
		want := []string{"1s ab", "2s cd", "3s ef", "3.5s ghij"}
		if !slices.Equal(got, want) || fx.Injections()[Drip] != 1 {
			t.Errorf("got %q with injections %v, want %q and one drip", got, fx.Injections(), want)
		}
	})
}

func TestLatencyDelaysEachChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t, always(Fault{Kind: Latency, Wait: time.Second, ChunkDelay: 3 * time.Second}))
		client, server := fx.connect(t)
		send(t, server, []byte("a"))
		receive(t, client, 1)
		time.Sleep(2 * time.Second)
		start := time.Now()
		send(t, server, []byte("b"))
		receive(t, client, 1)
		if delay := time.Since(start); delay != 3*time.Second {
			t.Errorf("the chunk took %v, want 3s", delay)
		}
		fx.Heal()
		start = time.Now()
		send(t, server, []byte("c"))
		receive(t, client, 1)
		if delay := time.Since(start); delay != 0 {
			t.Errorf("the chunk took %v after Heal, want no delay", delay)
		}
	})
}

func TestFaultWaitsForTimeAndBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t, always(Fault{Kind: Cut, Wait: time.Second, ServerBytes: 3}))
		client, server := fx.connect(t)
		send(t, server, []byte("abcdef"))
		receive(t, client, 6) // enough bytes have passed, but Wait has not
		time.Sleep(2 * time.Second)
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
	})
}

func TestInjectAllHitsOpenConnectionsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t, always(Fault{Kind: Reset, ServerBytes: 1}))
		a1, _ := fx.connect(t)
		a2, _ := fx.connect(t)
		fx.InjectAll(Fault{Kind: Cut})
		for _, c := range []net.Conn{a1, a2} {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want EOF", err)
			}
		}
		fx.Heal()
		client, server := fx.connect(t)
		send(t, server, []byte("abc"))
		receive(t, client, 3)
		if injections := fx.Injections(); injections[Cut] != 2 || injections[Reset] != 0 {
			t.Errorf("got injections %v, want two cuts", injections)
		}
	})
}

// When the first fault's duration ends, the fault that replaced it stays active.
func TestReplacedFaultDoesNotEndItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := overMemory(t, always(Fault{Kind: Stall, Duration: time.Second}))
		client, server := fx.connect(t)
		fx.InjectAll(Fault{Kind: Stall})
		start := time.Now()
		time.AfterFunc(time.Minute, func() { fx.InjectAll(Fault{}) })
		go server.Write([]byte("late")) // Write returns when the client has read
		receive(t, client, 4)
		if delay := time.Since(start); delay != time.Minute {
			t.Errorf("the data was held back for %v, want 1m0s", delay)
		}
	})
}

func TestCloseEndsEveryKindOfFault(t *testing.T) {
	for _, kind := range append(Kinds(), None) {
		t.Run(kind.String(), func(t *testing.T) {
			onBothNetworks(t, always(Fault{Kind: kind, ServerBytes: 1, ChunkDelay: time.Hour}),
				func(t *testing.T, fx *fixture) {
					client, server := fx.connect(t)
					send(t, server, []byte("a"))
					if kind != Reset { // a reset may discard the byte
						receive(t, client, 1)
					}
					server.Write([]byte("more"))
					fx.Close()
					if _, err := io.Copy(io.Discard, client); err != nil && !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("got %v, want EOF or ECONNRESET", err)
					}
				})
		})
	}
}

func TestRandomPlanIsDeterministicAndComplete(t *testing.T) {
	o := RandomOptions{Kinds: Kinds(), MaxBytes: 1000, MaxWait: time.Second, MaxDuration: time.Minute}
	a, b, other := Random(7, o), Random(7, o), Random(8, o)
	differ := false
	for round := range 20 {
		seen := make(map[Kind]bool)
		for i := range o.Kinds {
			conn := round*len(o.Kinds) + i
			f := a(conn)
			if f != b(conn) {
				t.Fatalf("connection %d: the same seed gave two faults: %+v and %+v", conn, f, b(conn))
			}
			differ = differ || f != other(conn)
			seen[f.Kind] = true
			if f.ServerBytes < 0 || f.ServerBytes > 1000 || f.Wait < 0 || f.Wait > time.Second ||
				f.Duration < time.Minute/2 || f.Duration > time.Minute {
				t.Errorf("connection %d: %+v is out of bounds", conn, f)
			}
		}
		if len(seen) != len(o.Kinds) {
			t.Errorf("round %d has %d kinds, want %d", round, len(seen), len(o.Kinds))
		}
	}
	if !differ {
		t.Error("two seeds gave the same plan")
	}
	if f := Random(1, RandomOptions{})(3); f != (Fault{}) {
		t.Errorf("without kinds, got %+v, want no fault", f)
	}
}
