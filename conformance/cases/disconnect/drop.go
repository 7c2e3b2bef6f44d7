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
	"github.com/listwatch/listwatch/conformance/wsframe"
)

func clientClose(e *harness.Env) {
	e.Use(harness.CountsWatches)
	for range 3 {
		leaves, stays := e.Dial(harness.From(e.Put("a"))), e.Dial(harness.From(e.Newest()))
		e.WaitForWatches(2)
		leaves.Close()
		if took := e.WaitForWatches(1); e.Setup.FakeTime && took > 250*time.Millisecond {
			e.Errorf("the watch was given up after %v, want at once", took)
		}
		e.Put("a")
		stays.Want("MODIFIED a")
		stays.Close()
		e.WaitForWatches(0)
	}
}

// A follower is a watch of the client under test that goes on over whatever happens, and what it should have seen.
type follower struct {
	*harness.Env
	listwatch.Watcher
	at listwatch.Version
}

func newFollower(e *harness.Env, r listwatch.Source, at listwatch.Version) *follower {
	e.Helper()
	return &follower{e, e.Follow(r, at), at}
}

// catchUp reads up to the last write and holds it against what was written.
func (f *follower) catchUp() {
	f.Helper()
	for last := f.Newest(); f.at != last; {
		got, err := f.NextOf(f)
		if want := f.NextWriteAfter(f.at); err != nil || got.Version != want {
			f.Fatalf("after version %d got %d, %v; want %d", f.at, got.Version, err, want)
		}
		f.at = got.Version
	}
}

func dropReset(e *harness.Env) {
	wired, wires := e.WithConnections()
	f := newFollower(wired, wired.Remote(wired.Route), e.Put("a"))
	for range 3 {
		e.Put("a")
		f.catchUp()
		before := wires.Count()
		wires.ResetAllAfter(100) // within an event
		for range 3 {
			e.Put("a")
		}
		f.catchUp()
		if wires.Count() == before {
			e.Fatal("the connection was not cut")
		}
		e.WaitForWatches(1)
	}
}

// mostVanished is how long a server may not notice that a client has vanished.
const mostVanished = 2 * time.Minute

func halfOpen(e *harness.Env) {
	e.Use(harness.CountsWatches)
	wired, wires := e.WithConnections()
	wired.Dial(harness.From(e.Put("a")))
	e.WaitForWatches(1)
	lost := wires.Last()
	defer lost.EndStall()
	lost.Stall(true)
	if e.Transport == "h1" {
		// It has no pings. Between idle ends the kernel's keepalive finds out, which is not in memory; else what is not taken does.
		e.PutMany(harness.FillsSockets)
	}
	if took := e.WaitForWatches(0); took > mostVanished {
		e.Errorf("a client that vanished was noticed after %v, want within %v", took, mostVanished)
	}
}

func clientHalfOpen(e *harness.Env) {
	const limit = 3 * time.Minute // two and a half and a while to come back
	wired, wires := e.WithConnections()
	f := newFollower(wired, wired.Remote(wired.Route), e.Put("a"))
	e.Put("a")
	f.catchUp()
	lost := wires.Last()
	defer lost.EndStall()
	lost.Stall(true)
	start := time.Now()
	e.Put("a")
	f.catchUp()
	if took := time.Since(start); took > limit {
		e.Errorf("the client went on %v after the server vanished, want within %v", took, limit)
	}
}

func storm(e *harness.Env) {
	const clients, slot = 120, 50 * time.Millisecond
	cut := make(chan struct{})
	first, again := e.SendThenHold(cut, harness.AddedEvent("a", "5")), harness.RecordVersion(make(chan string, clients))
	steps := append(slices.Repeat([]http.HandlerFunc{first}, clients), again)
	script, at := e.ServeInTurn(steps...)
	for range clients {
		r := e.Remote(&harness.Route{Instance: at.Instance, Client: e.NewClient(at.Instance, e.Variant)})
		if _, err := e.NextOf(e.Follow(r, 1)); err != nil {
			e.Fatal(err)
		}
	}
	<-time.After(3 * time.Minute) // what was lived through makes up for what failed before
	start := time.Now()
	close(cut)
	<-time.After(time.Minute)
	back := script.RequestTimes()[clients:]
	if len(back) < clients {
		e.Fatalf("%d of %d clients came back within a minute", len(back), clients)
	}
	waves := map[time.Duration]int{}
	for _, t := range back[:clients] {
		waves[t.Sub(start)/slot]++
	}
	for at, n := range waves {
		if n > clients/5 {
			e.Errorf("%d of %d clients came back within %v, after %v", n, clients, slot, at*slot)
		}
	}
}

// noLeak has watches of all ends: closed, reset, and ended by the server.
func noLeak(e *harness.Env) {
	const cycles, more = 60, 15
	wired, wires := e.WithConnections()
	start := e.Put("a")
	e.Put("a")
	var before int
	for i := range cycles {
		s := wired.Dial(harness.From(start))
		s.Want("MODIFIED a")
		if i == 0 {
			before = runtime.NumGoroutine()
		}
		if i%2 == 0 {
			s.Close()
			continue
		}
		wires.ResetAll(false)
		if _, err := s.Receive(); err == nil || err == io.EOF {
			e.Errorf("got %v after a reset, want an error", err)
		}
	}
	e.WaitForWatches(0)
	for begin := time.Now(); runtime.NumGoroutine() > before+more; {
		if time.Since(begin) > e.Patience() {
			e.Fatalf("%d goroutines are left of %d watches, there were %d with one", runtime.NumGoroutine(), cycles, before)
		}
		<-time.After(time.Millisecond + time.Since(begin)/8)
	}
}

func wsCloseEcho(e *harness.Env) {
	for want, payload := range map[int][]byte{
		wsframe.CloseNormal: wsframe.Close(wsframe.CloseNormal).Payload, wsframe.CloseGoingAway: wsframe.Close(wsframe.CloseGoingAway).Payload, 0: nil, // no code
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
		// To answer by the same code is what ends do "typically" (section 5.5.1): it is held against ours alone.
		if got != want && (got != wsframe.CloseNormal || want != 0 && e.Can(harness.InProcess)) {
			e.Errorf("close %d was answered by code %d, want the same", want, got)
		}
		if rest, err := io.ReadAll(a.Body); err != nil || len(rest) > 0 {
			e.Errorf("close %d: got % x, %v after the close frame, want the end of the connection", want, rest, err)
		}
	}
}

func ws1006(e *harness.Env) {
	wired, wires := e.WithConnections()
	start := e.Put("a")
	s := wired.Dial(harness.From(start))
	e.Put("a")
	s.Want("MODIFIED a")
	wires.Last().Reset()
	if _, err := s.Receive(); !errors.Is(err, listwatch.Unavailable) {
		e.Errorf("a connection that was cut is %v, want an error of code Unavailable", err)
	}

	lost := make(chan error, 10)
	trace := &client.Trace{Lost: func(err error, _ time.Duration) { lost <- err }}
	f := newFollower(wired, wired.RemoteTraced(wired.Route, trace), start)
	f.catchUp()
	for range 3 {
		wires.ResetAll(false)
		if err := <-lost; err == nil || err == io.EOF {
			e.Errorf("the client takes %v from a connection that was cut", err)
		}
		e.Put("a")
		f.catchUp()
	}
}
