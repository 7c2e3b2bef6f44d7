package disconnect

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
)

func clientClose(e *harness.Env) {
	e.Use(harness.CountsWatches)
	for range 3 {
		closing, staying := e.Dial(harness.From(e.Put("a"))), e.Dial(harness.From(e.Newest()))
		e.WaitForWatches(2)
		closing.Close()
		if took := e.WaitForWatches(1); e.Setup.FakeTime && took > 250*time.Millisecond {
			e.Errorf("the server released the watch after %v, want at most 250ms", took)
		}
		e.Put("a")
		staying.Want("MODIFIED a")
		staying.Close()
		e.WaitForWatches(0)
	}
}

// A resumingWatch is a watch of the client under test. After a failure, the client reconnects and
// resumes the watch.
type resumingWatch struct {
	*harness.Env
	listwatch.Watcher
	at listwatch.Version // version of the last event that was read
}

func newResumingWatch(e *harness.Env, r listwatch.Source, at listwatch.Version) *resumingWatch {
	e.Helper()
	return &resumingWatch{e, e.Follow(r, at), at}
}

// catchUp reads up to the last write. The client must return every write once and in order.
func (r *resumingWatch) catchUp() {
	r.Helper()
	for last := r.Newest(); r.at != last; {
		got, err := r.NextOf(r)
		if want := r.NextWriteAfter(r.at); err != nil || got.Version != want {
			r.Fatalf("after version %d: got version %d, %v; want %d", r.at, got.Version, err, want)
		}
		r.at = got.Version
	}
}

func resetWithinEvent(e *harness.Env) {
	env, conns := e.WithConnections()
	f := newResumingWatch(env, env.Remote(env.Route), e.Put("a"))
	for range 3 {
		e.Put("a")
		f.catchUp()
		before := conns.Count()
		conns.ResetAllAfter(100) // an event is longer than 100 bytes
		for range 3 {
			e.Put("a")
		}
		f.catchUp()
		if conns.Count() == before {
			e.Fatal("the client did not open a new connection after the reset")
		}
		e.WaitForWatches(1)
	}
}

// maxDetectionTime is the time within which a server must detect that a client has vanished.
const maxDetectionTime = 2 * time.Minute

func halfOpen(e *harness.Env) {
	e.Use(harness.CountsWatches)
	env, conns := e.WithConnections()
	env.Dial(harness.From(e.Put("a")))
	e.WaitForWatches(1)
	lost := conns.Last()
	defer lost.EndStall()
	lost.Stall(true)
	if e.Transport == "h1" {
		// HTTP/1.1 has no pings. TCP keepalive would end an idle connection, but the
		// in-memory network has no keepalive. Therefore write until the server is blocked
		// and its write timeout expires.
		e.PutMany(harness.WritesToFillBuffers)
	}
	if took := e.WaitForWatches(0); took > maxDetectionTime {
		e.Errorf("the server detected the vanished client after %v, want at most %v", took, maxDetectionTime)
	}
}

func clientHalfOpen(e *harness.Env) {
	// 2.5 minutes to detect the loss, the rest to reconnect.
	limit := e.Either(3*time.Minute, harness.RealIdleTimeout+e.Patience())
	env, conns := e.WithConnections()
	f := newResumingWatch(env, env.RemoteWith(env.Route, harness.SetIdleTimeout(env)), e.Put("a"))
	e.Put("a")
	f.catchUp()
	lost := conns.Last()
	defer lost.EndStall()
	lost.Stall(true)
	start := time.Now()
	e.Put("a")
	f.catchUp()
	if took := time.Since(start); took > limit {
		e.Errorf("the client resumed %v after the server vanished, want at most %v", took, limit)
	}
}

func reconnectStorm(e *harness.Env) {
	const interval = 50 * time.Millisecond
	clients, together := 120, 30
	if !e.Setup.FakeTime {
		clients, together = 40, 20 // a busy machine may delay some of them
	}
	cut := make(chan struct{})
	first, reconnected := e.SendThenHold(cut, harness.AddedEvent("a", "5")), harness.RecordVersion(make(chan string,
		clients))
	steps := append(slices.Repeat([]http.HandlerFunc{first}, clients), reconnected)
	server, route := e.ServeSequence(steps...)
	for range clients {
		r := e.Remote(&harness.Route{Instance: route.Instance, Client: e.NewClient(route.Instance, e.Variant)})
		if _, err := e.NextOf(e.Follow(r, 1)); err != nil {
			e.Fatal(err)
		}
	}
	e.Pause(3*time.Minute, 0) // the backoff resets after a connection has lasted two minutes
	start := time.Now()
	close(cut)
	e.Pause(time.Minute, 5*time.Second)
	reconnects := server.RequestTimes()[clients:]
	if len(reconnects) < clients {
		e.Fatalf("%d of %d clients reconnected in time", len(reconnects), clients)
	}
	counts := map[time.Duration]int{}
	for _, t := range reconnects[:clients] {
		counts[t.Sub(start)/interval]++
	}
	for i, n := range counts {
		// The delays are random up to 800 ms, which is 16 intervals. The probability that more than
		// a quarter of the clients reconnect within any one interval is about 1 in 7 billion.
		if n > together {
			e.Errorf("%d of %d clients reconnected within the same %v, after %v", n, clients, interval, i*interval)
		}
	}
}

// noLeaks opens watches, closes half of them, and resets the connections of the other half.
// Afterwards no goroutines of the watches may remain.
func noLeaks(e *harness.Env) {
	const cycles, slack = 60, 15
	env, conns := e.WithConnections()
	start := e.Put("a")
	e.Put("a")
	var before int
	for i := range cycles {
		s := env.Dial(harness.From(start))
		s.Want("MODIFIED a")
		if i == 0 {
			before = runtime.NumGoroutine()
		}
		if i%2 == 0 {
			s.Close()
			continue
		}
		conns.ResetAll(false)
		if _, err := s.Receive(); err == nil || err == io.EOF {
			e.Errorf("got %v after a reset, want an error", err)
		}
	}
	e.WaitForWatches(0)
	for begin := time.Now(); runtime.NumGoroutine() > before+slack; {
		if time.Since(begin) > e.Patience() {
			e.Fatalf("%d goroutines remain after %d watches, there were %d with one watch",
				runtime.NumGoroutine(), cycles, before)
		}
		<-time.After(time.Millisecond + time.Since(begin)/8)
	}
}

func wsCloseEcho(e *harness.Env) {
	for want, payload := range map[int][]byte{
		wsframe.CloseNormal:    wsframe.Close(wsframe.CloseNormal).Payload,
		wsframe.CloseGoingAway: wsframe.Close(wsframe.CloseGoingAway).Payload,
		0:                      nil, // a close frame without a code
	} {
		a := e.WatchRaw("")
		a.WantAccepted()
		sent := wsframe.Frame{First: wsframe.Final | wsframe.OpClose, Masked: true, Payload: payload}
		if _, err := a.Conn.Write(sent.Bytes()); err != nil {
			e.Fatal(err)
		}
		got, err := wsframe.ReadCloseCode(a.Body)
		if err != nil {
			e.Fatalf("close %d: %v", want, err)
		}
		// RFC 6455 says that an endpoint "typically" echoes the code (section 5.5.1), so
		// the case requires it of this module's server only.
		if got != want && (got != wsframe.CloseNormal || want != 0 && e.Supports(harness.InProcess)) {
			e.Errorf("close %d: the server answered with code %d, want the same", want, got)
		}
		if rest, err := io.ReadAll(a.Body); err != nil || len(rest) > 0 {
			e.Errorf("close %d: got % x, %v after the close frame, want the end of the connection", want, rest, err)
		}
	}
}

func wsLostConnection(e *harness.Env) {
	env, conns := e.WithConnections()
	start := e.Put("a")
	s := env.Dial(harness.From(start))
	e.Put("a")
	s.Want("MODIFIED a")
	conns.Last().Reset()
	if _, err := s.Receive(); !errors.Is(err, listwatch.Unavailable) {
		e.Errorf("after a reset: got %v, want an error with code Unavailable", err)
	}

	lost := make(chan error, 10)
	trace := &client.Trace{Lost: func(err error, _ time.Duration) { lost <- err }}
	f := newResumingWatch(env, env.RemoteTraced(env.Route, trace), start)
	f.catchUp()
	for range 3 {
		conns.ResetAll(false)
		if err := <-lost; err == nil || err == io.EOF {
			e.Errorf("the client reported %v after a reset, want an error", err)
		}
		e.Put("a")
		f.catchUp()
	}
}
