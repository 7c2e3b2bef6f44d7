package loop

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// A countingConn counts its writes.
type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// watches is a handler that makes each response a detached watch.
type watches struct {
	mu  sync.Mutex
	all []Watch // guarded by mu
}

func (h *watches) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	watch := TakeOver(w, time.Minute, true, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, watch)
}

// openWatches opens n watches on one connection of a scripted client.
func openWatches(t *testing.T, n int, settings ...http2.Setting) (*h2peer.Peer, []Watch, *fixture) {
	t.Helper()
	h := &watches{}
	f := start(t, h.ServeHTTP, false,
		func(hs *http.Server) { hs.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 10000} })
	p := h2peer.Client(t, f.dial(t), settings...)
	p.Must(p.Framer.WriteWindowUpdate(0, 1<<30))
	for i := range n {
		p.Must(p.Request(uint32(2*i+1), ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/"))
		p.ReadUntil(h2peer.IsHeaders(uint32(2*i + 1)))
		synctest.Wait() // the handler adds the watch after it has sent the headers
	}
	return p, h.all, f
}

func (f *fixture) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := f.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestAnIdleWatchHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		openWatches(t, 1)
		before := runtime.NumGoroutine()
		openWatches(t, 500)
		// Besides the watches, the second call starts a server with its Serve, a reader of the
		// connection, and the goroutines of the fixture.
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("500 watches on one connection have %d goroutines, want at most 10", n)
		}
	})
}

func TestManyStreamsShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		writes := new(atomic.Int64)
		h := &watches{}
		f := start(t, h.ServeHTTP, false)
		client, server := net.Pipe()
		c := newConn(f.http, countingConn{server, writes}, &tls.ConnectionState{Version: tls.VersionTLS13}, h,
			Options{})
		go new(Server).run(t.Context(), c)
		t.Cleanup(func() { client.Close() })
		p := h2peer.Client(t, client)
		p.Must(p.Framer.WriteWindowUpdate(0, 1<<30))
		for i := range n {
			p.Must(p.Request(uint32(2*i+1), ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/"))
			p.ReadUntil(h2peer.IsHeaders(uint32(2*i + 1)))
		}
		synctest.Wait()
		frame := make([]byte, 1000)
		before := writes.Load()
		// The lock keeps the writer from starting before all streams are ready.
		c.mu.Lock()
		for _, w := range h.all {
			w.st.step = func() { w.Send([][]byte{frame}) }
			w.st.enqueue()
		}
		c.mu.Unlock()
		for i := range n {
			for len(p.Data[uint32(2*i+1)]) < len(frame) {
				p.Read()
			}
		}
		if got := writes.Load() - before; got > 1 {
			t.Errorf("one frame for each of %d streams took %d writes, want 1", n, got)
		}
	})
}

func TestStreamsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, all, _ := openWatches(t, 3, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		c := all[0].st.c
		c.mu.Lock()
		for i, w := range all {
			size := 1000
			if i == 0 {
				size = 500 << 10 // the first stream has much more to send
			}
			w.st.step = func() { w.Send([][]byte{make([]byte, size)}) }
			w.st.enqueue()
		}
		c.mu.Unlock()
		for len(p.Data[5]) < 1000 {
			p.Read()
		}
		if got := len(p.Data[1]); got > 2*quantum {
			t.Errorf("the first stream sent %d bytes before the last one had its turn, want %d at most", got, 2*quantum)
		}
	})
}

func TestAStalledStreamHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, all, _ := openWatches(t, 2, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		calls := 0
		var step func()
		step = func() {
			calls++
			if err := all[0].Send([][]byte{make([]byte, 400)}); err == nil {
				all[0].Go(step)
			}
		}
		all[0].Go(step)
		for len(p.Data[1]) < 1000 {
			p.Read()
		}
		synctest.Wait()
		if calls != 3 {
			t.Errorf("the stream was polled %d times, want 3: until the window was empty", calls)
		}
		c := all[0].st.c
		c.mu.Lock()
		if o := all[0].st.out; o == nil || len(o.frames) != 1 || len(o.frames[0]) != 200 {
			t.Errorf("got %+v, want the rest of the last frame", o)
		}
		if c.writer.running {
			t.Error("the connection holds a writer")
		}
		if c.out.buf != nil {
			t.Errorf("the connection holds a buffer of %d bytes", len(c.out.buf))
		}
		c.mu.Unlock()
		// The other stream is not affected.
		all[1].Go(func() { all[1].Send([][]byte{make([]byte, 500)}) })
		for len(p.Data[3]) < 500 {
			p.Read()
		}
		p.Must(p.Framer.WriteWindowUpdate(1, 1000))
		for len(p.Data[1]) < 2000 {
			p.Read()
		}
	})
}

func TestStalledStreamsHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stalled = 1000
		p, all, _ := openWatches(t, stalled+1, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		frame := make([]byte, 64<<10) // shared, as the frames of a log
		var steps atomic.Int64
		before := memoryInUse()
		for _, w := range all[:stalled] {
			var step func()
			step = func() {
				steps.Add(1)
				if w.Send([][]byte{frame[:400]}) == nil {
					w.Go(step)
				}
			}
			w.Go(step)
		}
		for id := uint32(1); id < 2*stalled; id += 2 {
			for len(p.Data[id]) < 1000 {
				p.Read()
			}
		}
		synctest.Wait()
		if n := steps.Load(); n != 3*stalled {
			t.Errorf("the streams were polled %d times, want %d", n, 3*stalled)
		}
		clear(p.Data)
		// Each stalled stream keeps its function, a slice of the shared frame, and the time of its
		// reset.
		if held := (memoryInUse() - before) / stalled; held > 1024 {
			t.Errorf("a stalled stream holds %d bytes, want 1024 at most", held)
		}
		all[stalled].Go(func() { all[stalled].Send([][]byte{frame[:500]}) })
		for len(p.Data[2*stalled+1]) < 500 {
			p.Read()
		}
	})
}

func TestAStalledStreamIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, all, _ := openWatches(t, 2, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		done, result := make(chan time.Time, 1), make(chan error, 1)
		all[0].OnDone(func() { done <- time.Now() })
		begin := time.Now()
		all[0].Go(func() { result <- all[0].Send([][]byte{{1}}) })
		p.ReadUntil(h2peer.IsReset(1))
		if d := (<-done).Sub(begin); d != time.Minute {
			t.Errorf("the stream was reset after %v, want its timeout, 1m", d)
		}
		if err := <-result; err != errStalled {
			t.Errorf("the pending function got %v, want %v", err, errStalled)
		}
	})
}

// A WINDOW_UPDATE for the connection must extend the timeout only of the streams that can then
// send.
func TestStalledStreamsAreResetDespiteTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		p, all, _ := openWatches(t, n)
		c := all[0].st.c
		c.mu.Lock()
		c.sched.window = 0
		c.mu.Unlock()
		var ended atomic.Int64
		for _, w := range all {
			w.OnDone(func() { ended.Add(1) })
			w.Go(func() { w.Send([][]byte{make([]byte, 2000)}) })
		}
		go io.Copy(io.Discard, p.Conn) // ends with the connection
		for range 100 {
			time.Sleep(time.Second)
			p.Must(p.Framer.WriteWindowUpdate(0, 1))
		}
		if got := ended.Load(); got < n/4 {
			t.Errorf("%d of %d stalled streams were reset, want at least a quarter", got, n)
		}
	})
}

// Streams that could not send when the connection's window opened must keep their place in line.
func TestSmallWindowsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		p, all, _ := openWatches(t, n)
		c := all[0].st.c
		c.mu.Lock()
		c.sched.window = 0
		c.mu.Unlock()
		for _, w := range all {
			w.Go(func() { w.Send([][]byte{make([]byte, 2000)}) })
		}
		for i := range 3 * n {
			p.Must(p.Framer.WriteWindowUpdate(0, 2))
			for f := p.Read(); ; f = p.Read() {
				if d, ok := f.(*http2.DataFrame); ok && len(d.Data()) == 2 {
					break
				}
			}
			for id, data := range p.Data {
				if rounds := i/n + 1; len(data) != 2*rounds && len(data) != 2*(rounds-1) {
					t.Fatalf("stream %d has %d bytes after %d windows", id, len(data), i+1)
				}
			}
		}
		if len(p.Data) != n {
			t.Errorf("%d streams have sent, want %d", len(p.Data), n)
		}
	})
}

func TestEndsNeedNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, all, _ := openWatches(t, 3)
		c := all[0].st.c
		c.mu.Lock()
		c.sched.window = 0
		c.mu.Unlock()
		for _, w := range all {
			w.Go(func() { w.Send([][]byte{make([]byte, 1000)}) })
		}
		synctest.Wait()
		for _, id := range []uint32{3, 5, 1} { // in the middle, the last one, and the only one
			all[id/2].Close(nil)
			p.ReadUntil(h2peer.IsEnd(id))
		}
	})
}

func TestShutdownHasTwoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, all, f := openWatches(t, 1)
		down := make(chan error)
		go func() { down <- f.http.Shutdown(t.Context()) }()
		first := p.ReadUntil(h2peer.Is[*http2.GoAwayFrame]).(*http2.GoAwayFrame)
		if first.LastStreamID != 1<<31-1 || first.ErrCode != http2.ErrCodeNo {
			t.Errorf("got %v, want a GOAWAY that only announces the end", first)
		}
		// A request that was under way is still served.
		p.Must(p.Request(3, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/"))
		synctest.Wait() // it is served before the client acknowledges the PING
		p.ReadUntil(h2peer.IsHeaders(3))
		second := p.ReadUntil(h2peer.Is[*http2.GoAwayFrame]).(*http2.GoAwayFrame)
		if second.LastStreamID != 3 {
			t.Errorf("got %v, want the last stream 3", second)
		}
		synctest.Wait()
		all[0].Close(nil)
		p.ReadUntil(h2peer.IsEnd(1))
		p.Must(p.Framer.WriteRSTStream(3, http2.ErrCodeCancel))
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

func TestConnectionsAreCheckedForLife(t *testing.T) {
	tests := []struct {
		name      string
		configure func(*http.Server)
		want      time.Duration
	}{
		{"PING is not answered", func(hs *http.Server) {
			hs.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Second, PingTimeout: 5 * time.Second}
		}, 25 * time.Second},
		{"no stream is open", func(hs *http.Server) { hs.IdleTimeout = time.Minute }, time.Minute + goAwayTimeout},
		{
			"SETTINGS is not acknowledged", func(hs *http.Server) { hs.IdleTimeout = 3 * time.Second },
			3*time.Second + goAwayTimeout,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, (&watches{}).ServeHTTP, false, tt.configure)
				conn := f.dial(t)
				framer := http2.NewFramer(conn, conn)
				fmt.Fprint(conn, http2.ClientPreface)
				framer.WriteSettings()
				if !strings.HasPrefix(tt.name, "SETTINGS") {
					framer.WriteSettingsAck()
				}
				begin := time.Now()
				for {
					if _, err := framer.ReadFrame(); err != nil {
						break
					}
				}
				if d := time.Since(begin); d != tt.want {
					t.Errorf("the connection ended after %v, want %v", d, tt.want)
				}
			})
		})
	}
}

func TestSettingsMustBeAcknowledged(t *testing.T) {
	for header, want := range map[time.Duration]time.Duration{0: settingsTimeout, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, (&watches{}).ServeHTTP, false, func(hs *http.Server) { hs.ReadHeaderTimeout = header })
			conn := f.dial(t)
			framer := http2.NewFramer(conn, conn)
			fmt.Fprint(conn, http2.ClientPreface)
			framer.WriteSettings()
			begin := time.Now()
			for {
				frame, err := framer.ReadFrame()
				if err != nil {
					t.Fatal(err)
				}
				if g, ok := frame.(*http2.GoAwayFrame); ok {
					if g.ErrCode != http2.ErrCodeSettingsTimeout || time.Since(begin) != want {
						t.Errorf("got %v after %v, want the GOAWAY after %v", g, time.Since(begin), want)
					}
					return
				}
			}
		})
	}
}

// A slowConn reads 4 KiB a second.
type slowConn struct{ net.Conn }

func (c slowConn) Read(p []byte) (int, error) {
	<-time.After(time.Second)
	return c.Conn.Read(p[:min(len(p), 4<<10)])
}

// A TLS connection is useless after a deadline has expired, so each write must be small.
func TestSlowClientsAreNotCutOff(t *testing.T) {
	for name, secure := range map[string]bool{"clear text": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 512 << 10
				f := start(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) }, secure,
					func(hs *http.Server) {
						hs.HTTP2 = &http.HTTP2Config{
							WriteByteTimeout: 5 * time.Second,
							SendPingTimeout:  10 * time.Second,
							PingTimeout:      5 * time.Second,
						}
					})
				var conn net.Conn = slowConn{f.dial(t)}
				if secure {
					config := f.ClientTLS.Clone()
					config.NextProtos, config.InsecureSkipVerify = []string{"h2"}, true
					conn = tls.Client(conn, config)
				}
				p := h2peer.Client(t, conn, http2.Setting{ID: http2.SettingInitialWindowSize, Val: size})
				p.Must(p.Framer.WriteWindowUpdate(0, size))
				p.Must(headers(p.Framer, 0, true))
				for len(p.Data[1]) < size {
					if h2peer.Is[*http2.DataFrame](p.Read()) {
						p.Must(p.Framer.WriteWindowUpdate(0, 16<<10)) // shows that the client reads
					}
				}
			})
		})
	}
}

// A client that reads slowly reads a PING late, because it must first read what precedes it.
func TestSlowClientsMayAnswerPingsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 60 << 10 // fits into the buffers on the way
		f := start(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, size))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, false, func(hs *http.Server) {
			hs.HTTP2 = &http.HTTP2Config{
				WriteByteTimeout: 5 * time.Second, SendPingTimeout: 3 * time.Second,
				PingTimeout: 3 * time.Second,
			}
		})
		p := h2peer.Client(t, slowConn{f.dial(t)})
		p.Must(headers(p.Framer, 0, true))
		for pings := 0; pings < 3; {
			if ping, ok := p.Read().(*http2.PingFrame); ok {
				p.Must(p.Framer.WritePing(true, ping.Data))
				pings++
			}
		}
	})
}

func TestSendInRunDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, all, _ := openWatches(t, 1, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		w := all[0]
		w.Run(func() {
			for range 2 {
				if err := w.Send([][]byte{make([]byte, 100)}); err != nil {
					t.Error(err)
				}
			}
		})
		var mayContinue atomic.Bool
		w.Go(func() { mayContinue.Store(true) })
		for _, sent := range []int{10, 200} {
			for len(p.Data[1]) < sent {
				p.Read()
			}
			synctest.Wait()
			if mayContinue.Load() != (sent == 200) {
				t.Errorf("after %d of 200 bytes: Go has called its function: %v", sent, mayContinue.Load())
			}
			p.Must(p.Framer.WriteWindowUpdate(1, 1000))
		}
	})
}
