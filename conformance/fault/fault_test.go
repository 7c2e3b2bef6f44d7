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

// A bench is a proxy between a client and a server, whose connections a test holds in its hands.
type bench struct {
	*Proxy
	server net.Listener
	dial   func(context.Context) (net.Conn, error)
	bites  chan Injection
}

// overMemory returns a bench in memory, overTCP one on sockets.
func overMemory(t *testing.T, plan Plan) *bench {
	front, back := memnet.Listen(), memnet.Listen()
	b := &bench{server: back, bites: make(chan Injection, 64)}
	b.Proxy = &Proxy{
		Listener: front, Dial: func(ctx context.Context) (net.Conn, error) { return back.Dial(ctx, "", "") }, Plan: plan,
		OnInject: func(x Injection) { b.bites <- x },
	}
	b.dial = func(ctx context.Context) (net.Conn, error) { return front.Dial(ctx, "", "") }
	b.start(t)
	return b
}

func overTCP(t *testing.T, plan Plan) *bench {
	front, back := listen(t), listen(t)
	b := &bench{server: back, bites: make(chan Injection, 64)}
	dialer := new(net.Dialer)
	b.Proxy = &Proxy{
		Listener: front, Plan: plan, OnInject: func(x Injection) { b.bites <- x },
		Dial: func(ctx context.Context) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", back.Addr().String())
		},
	}
	b.dial = func(ctx context.Context) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", front.Addr().String())
	}
	b.start(t)
	return b
}

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (b *bench) start(t *testing.T) {
	done := make(chan error, 1)
	go func() { done <- b.Serve() }()
	t.Cleanup(func() {
		b.Close()
		b.server.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// connect returns the two ends of a connection.
func (b *bench) connect(t *testing.T) (client, server net.Conn) {
	t.Helper()
	client, err := b.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = b.server.Accept(); err != nil {
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

// onBoth runs test over memory, in a bubble, and over sockets.
func onBoth(t *testing.T, plan Plan, test func(*testing.T, *bench)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, overMemory(t, plan)) })
	})
	t.Run("tcp", func(t *testing.T) { test(t, overTCP(t, plan)) })
}

func TestBytesAndEndsPassUnchanged(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		client, server := b.connect(t)
		random := rand.NewChaCha8([32]byte{1})
		up, down := make([]byte, 300<<10), make([]byte, 500<<10)
		random.Read(up)
		random.Read(down)
		answered := make(chan error, 1)
		go func() {
			got, err := io.ReadAll(server) // until the client has said that it ends
			if err == nil && !bytes.Equal(got, up) {
				err = errors.New("what the client sent is not what came")
			}
			if _, fault := server.Write(down); fault != nil {
				err = fault
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
			t.Errorf("got %d bytes and %v, want %d and the end", len(got), err, len(down))
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if n := len(b.Injections()); n != 0 {
			t.Errorf("%d kinds of faults bit, want none", n)
		}
	})
}

func TestCutEndsAfterTheBytes(t *testing.T) {
	onBoth(t, always(Fault{Kind: Cut, ServerBytes: 1000}), func(t *testing.T, b *bench) {
		client, server := b.connect(t)
		go server.Write(make([]byte, 5000))
		got, err := io.ReadAll(client)
		if len(got) != 1000 || err != nil {
			t.Errorf("got %d bytes and %v, want 1000 and the end", len(got), err)
		}
		if x := <-b.bites; x != (Injection{Cut, 0, 1000}) || b.Injections()[Cut] != 1 {
			t.Errorf("got %+v", x)
		}
	})
}

func TestResetIsSeenAsOneByBothEnds(t *testing.T) {
	onBoth(t, always(Fault{Kind: Reset, ServerBytes: 3}), func(t *testing.T, b *bench) {
		client, server := b.connect(t)
		send(t, server, []byte("abc"))
		<-b.bites
		for name, c := range map[string]net.Conn{"client": client, "server": server} {
			if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: got %v, want a reset", name, err)
			}
		}
	})
}

func TestServerThatRefusesIsAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, nil)
		b.server.Close()
		client, err := b.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := io.ReadAll(client); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want a reset", err)
		}
	})
}

func TestStallHoldsEverythingBackAndLetsItGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, always(Fault{Kind: Stall, ServerBytes: 2, Duration: time.Minute}))
		client, server := b.connect(t)
		start := time.Now()
		send(t, server, []byte("abcd"))
		receive(t, client, 2)
		if took := time.Since(start); took != 0 {
			t.Errorf("the first bytes took %v, want none", took)
		}
		server.(*memnet.Conn).CloseWrite() // seen after the bytes
		if got := receive(t, client, 2); string(got) != "cd" || time.Since(start) != time.Minute {
			t.Errorf("got %q after %v, want cd after a minute", got, time.Since(start))
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
		if b.Injections()[Stall] != 1 {
			t.Errorf("bit %v, want one stall", b.Injections())
		}
	})
}

func TestStallThatHoldsNothingBackDidNotBite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, always(Fault{Kind: Stall, Duration: time.Minute}))
		client, server := b.connect(t)
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		send(t, server, []byte("a"))
		receive(t, client, 1)
		if len(b.Injections()) != 0 {
			t.Errorf("bit %v, want nothing", b.Injections())
		}
	})
}

func TestHalfOpenLetsEverythingVanishAndNoEndBeSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, always(Fault{Kind: HalfOpen, ServerBytes: 1}))
		client, server := b.connect(t)
		send(t, server, []byte("abc"))
		receive(t, client, 1)
		<-b.bites
		send(t, client, []byte("anybody?"))
		b.Heal() // what has vanished is gone
		server.Close()
		client.SetReadDeadline(time.Now().Add(time.Hour))
		if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
			t.Errorf("got %d bytes and %v, want an hour of silence", n, err)
		}
	})
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func TestDripLetsFewBytesPassAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, always(Fault{Kind: Drip, ChunkSize: 2, ChunkDelay: time.Second, Duration: 3500 * time.Millisecond}))
		client, server := b.connect(t)
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
		if !slices.Equal(got, want) || b.Injections()[Drip] != 1 {
			t.Errorf("got %q and %v, want %q and one drip", got, b.Injections(), want)
		}
	})
}

func TestLatencyDelaysEachPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, always(Fault{Kind: Latency, Wait: time.Second, ChunkDelay: 3 * time.Second}))
		client, server := b.connect(t)
		send(t, server, []byte("a"))
		receive(t, client, 1)
		time.Sleep(2 * time.Second)
		start := time.Now()
		send(t, server, []byte("b"))
		receive(t, client, 1)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want 3 s", took)
		}
		b.Heal()
		start = time.Now()
		send(t, server, []byte("c"))
		receive(t, client, 1)
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v after the heal, want none", took)
		}
	})
}

func TestFaultWaitsForItsTimeAndItsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, always(Fault{Kind: Cut, Wait: time.Second, ServerBytes: 3}))
		client, server := b.connect(t)
		send(t, server, []byte("abcdef"))
		receive(t, client, 6) // more than enough, but too early
		time.Sleep(2 * time.Second)
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
	})
}

func TestStrikeHitsAllThatAreOpenAndHealSparesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, always(Fault{Kind: Reset, ServerBytes: 1}))
		a1, _ := b.connect(t)
		a2, _ := b.connect(t)
		b.InjectAll(Fault{Kind: Cut})
		for _, c := range []net.Conn{a1, a2} {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want the end", err)
			}
		}
		b.Heal()
		client, server := b.connect(t)
		send(t, server, []byte("abc"))
		receive(t, client, 3)
		if bites := b.Injections(); bites[Cut] != 2 || bites[Reset] != 0 {
			t.Errorf("bit %v, want two cuts", bites)
		}
	})
}

// The end of a fault that another one has replaced must not end that.
func TestStrikeOutlastsTheFaultThatItReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := overMemory(t, always(Fault{Kind: Stall, Duration: time.Second}))
		client, server := b.connect(t)
		b.InjectAll(Fault{Kind: Stall})
		start := time.Now()
		time.AfterFunc(time.Minute, func() { b.InjectAll(Fault{}) })
		go server.Write([]byte("late")) // ends when it is read
		receive(t, client, 4)
		if took := time.Since(start); took != time.Minute {
			t.Errorf("held back for %v, want 1m0s", took)
		}
	})
}

func TestCloseEndsWhatHangs(t *testing.T) {
	for _, kind := range append(Kinds(), None) {
		t.Run(kind.String(), func(t *testing.T) {
			onBoth(t, always(Fault{Kind: kind, ServerBytes: 1, ChunkDelay: time.Hour}), func(t *testing.T, b *bench) {
				client, server := b.connect(t)
				send(t, server, []byte("a"))
				if kind != Reset { // it may take the byte with it
					receive(t, client, 1)
				}
				server.Write([]byte("more"))
				b.Close()
				if _, err := io.Copy(io.Discard, client); err != nil && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %v, want an end", err)
				}
			})
		})
	}
}

func TestPlanFollowsFromTheSeedAndLeavesNoKindOut(t *testing.T) {
	m := RandomOptions{Kinds: Kinds(), MaxBytes: 1000, MaxWait: time.Second, MaxDuration: time.Minute}
	a, b, other := Random(7, m), Random(7, m), Random(8, m)
	differ := false
	for round := range 20 {
		seen := make(map[Kind]bool)
		for i := range m.Kinds {
			conn := round*len(m.Kinds) + i
			f := a(conn)
			if f != b(conn) {
				t.Fatalf("connection %d: one seed, two faults: %+v and %+v", conn, f, b(conn))
			}
			differ = differ || f != other(conn)
			seen[f.Kind] = true
			if f.ServerBytes < 0 || f.ServerBytes > 1000 || f.Wait < 0 || f.Wait > time.Second || f.Duration < time.Minute/2 || f.Duration > time.Minute {
				t.Errorf("connection %d: out of bounds: %+v", conn, f)
			}
		}
		if len(seen) != len(m.Kinds) {
			t.Errorf("round %d has %d kinds of %d", round, len(seen), len(m.Kinds))
		}
	}
	if !differ {
		t.Error("two seeds, one plan")
	}
	if f := Random(1, RandomOptions{})(3); f != (Fault{}) {
		t.Errorf("an empty mix has %+v", f)
	}
}
