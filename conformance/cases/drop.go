package cases

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

func clientClose(e *env) {
	e.use(CountsWatches)
	for range 3 {
		leaves, stays := e.dial(from(e.put("a"))), e.dial(from(e.newest()))
		e.waitWatches(2)
		leaves.Close()
		if took := e.waitWatches(1); e.setup.FakeTime && took > 250*time.Millisecond {
			e.Errorf("the watch was given up after %v, want at once", took)
		}
		e.put("a")
		stays.want("MODIFIED a")
		stays.Close()
		e.waitWatches(0)
	}
}

// A follower is a watch of the client under test that goes on over whatever happens, and what it should have seen.
type follower struct {
	*env
	listwatch.Watcher
	at listwatch.Version
}

func (e *env) follower(r listwatch.Source, at listwatch.Version) *follower {
	e.Helper()
	return &follower{e, e.follow(r, at), at}
}

// catchUp reads up to the last write and holds it against what was written.
func (f *follower) catchUp() {
	f.Helper()
	for last := f.newest(); f.at != last; {
		got, err := f.nextOf(f)
		if want := f.writeAfter(f.at); err != nil || got.Version != want {
			f.Fatalf("after version %d got %d, %v; want %d", f.at, got.Version, err, want)
		}
		f.at = got.Version
	}
}

func dropReset(e *env) {
	wired, wires := e.wired()
	f := wired.follower(wired.remote(wired.site), e.put("a"))
	for range 3 {
		e.put("a")
		f.catchUp()
		before := wires.count()
		wires.last().cutAfter(100) // of an event
		for range 3 {
			e.put("a")
		}
		f.catchUp()
		if wires.count() == before {
			e.Fatal("the connection was not cut")
		}
		e.waitWatches(1)
	}
}

// mostVanished is how long a server may not notice that a client has vanished.
const mostVanished = 2 * time.Minute

func halfOpen(e *env) {
	e.use(CountsWatches)
	wired, wires := e.wired()
	wired.dial(from(e.put("a")))
	e.waitWatches(1)
	lost := wires.last()
	defer lost.found()
	lost.stall(true)
	if e.on == "h1" {
		// It has no pings. Between idle ends the kernel's keepalive finds out, which is not in memory; else what is not taken does.
		e.putMany(enough)
	}
	if took := e.waitWatches(0); took > mostVanished {
		e.Errorf("a client that vanished was noticed after %v, want within %v", took, mostVanished)
	}
}

func clientHalfOpen(e *env) {
	const limit = 3 * time.Minute // two and a half and a while to come back
	wired, wires := e.wired()
	f := wired.follower(wired.remote(wired.site), e.put("a"))
	e.put("a")
	f.catchUp()
	lost := wires.last()
	defer lost.found()
	lost.stall(true)
	start := time.Now()
	e.put("a")
	f.catchUp()
	if took := time.Since(start); took > limit {
		e.Errorf("the client went on %v after the server vanished, want within %v", took, limit)
	}
}

func storm(e *env) {
	const clients, slot = 120, 50 * time.Millisecond
	cut := make(chan struct{})
	first, again := e.holds(cut, added("a", "5")), recordVersion(make(chan string, clients))
	steps := append(slices.Repeat([]http.HandlerFunc{first}, clients), again)
	script, at := e.play(steps...)
	for range clients {
		r := e.remote(&site{at.Instance, e.newClient(at.Instance, e.way)})
		if _, err := e.nextOf(e.follow(r, 1)); err != nil {
			e.Fatal(err)
		}
	}
	<-time.After(3 * time.Minute) // what was lived through makes up for what failed before
	start := time.Now()
	close(cut)
	<-time.After(time.Minute)
	back := script.times()[clients:]
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
func noLeak(e *env) {
	const cycles, more = 60, 15
	wired, wires := e.wired()
	start := e.put("a")
	e.put("a")
	var before int
	for i := range cycles {
		s := wired.dial(from(start))
		s.want("MODIFIED a")
		if i == 0 {
			before = runtime.NumGoroutine()
		}
		if i%2 == 0 {
			s.Close()
			continue
		}
		wires.last().reset()
		if _, err := s.Receive(); err == nil || err == io.EOF {
			e.Errorf("got %v after a reset, want an error", err)
		}
	}
	e.waitWatches(0)
	for begin := time.Now(); runtime.NumGoroutine() > before+more; {
		if time.Since(begin) > e.patience() {
			e.Fatalf("%d goroutines are left of %d watches, there were %d with one", runtime.NumGoroutine(), cycles, before)
		}
		<-time.After(time.Millisecond + time.Since(begin)/8)
	}
}

func wsCloseEcho(e *env) {
	for want, payload := range map[int][]byte{
		closedNormally: closing(closedNormally).payload, closedGoingAway: closing(closedGoingAway).payload, 0: nil, // no code
	} {
		a := e.watch("")
		a.accepted()
		sent := wsFrame{first: bitFinal | opClose, masked: true, payload: payload}
		if _, err := a.conn.Write(sent.bytes()); err != nil {
			e.Fatal(err)
		}
		got, err := closeCode(a.body)
		if err != nil {
			e.Fatalf("close %d: %v", want, err)
		}
		// To answer by the same code is what ends do "typically" (section 5.5.1): it is held against ours alone.
		if got != want && (got != closedNormally || want != 0 && e.can(InProcess)) {
			e.Errorf("close %d was answered by code %d, want the same", want, got)
		}
		if rest, err := io.ReadAll(a.body); err != nil || len(rest) > 0 {
			e.Errorf("close %d: got % x, %v after the close frame, want the end of the connection", want, rest, err)
		}
	}
}

func ws1006(e *env) {
	wired, wires := e.wired()
	start := e.put("a")
	s := wired.dial(from(start))
	e.put("a")
	s.want("MODIFIED a")
	wires.last().reset()
	if _, err := s.Receive(); !errors.Is(err, listwatch.Unavailable) {
		e.Errorf("a connection that was cut is %v, want an error of code Unavailable", err)
	}

	lost := make(chan error, 10)
	trace := &client.Trace{Lost: func(err error, _ time.Duration) { lost <- err }}
	f := wired.follower(wired.remoteTraced(wired.site, trace), start)
	f.catchUp()
	for range 3 {
		wires.last().reset()
		if err := <-lost; err == nil || err == io.EOF {
			e.Errorf("the client takes %v from a connection that was cut", err)
		}
		e.put("a")
		f.catchUp()
	}
}
