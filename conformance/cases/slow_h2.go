package cases

import (
	"time"

	"golang.org/x/net/http2"
)

// h2Window is the window of a stream where SETTINGS say nothing (RFC 9113 6.9.2).
const h2Window = 65535

func h2WindowZero(e *env) {
	const stalled, flowing = 1, 3
	start := e.put("a", "to", "stalled")
	p := e.h2Peer()
	p.widen()
	p.watch(stalled, labelled("to=stalled")+"&"+from(start))
	p.until(isHeadersOf(stalled))
	p.watch(flowing, labelled("to=flowing")+"&"+from(start))
	p.until(isHeadersOf(flowing))

	for range 2 {
		e.putLabelled("a", "stalled", h2Window)
	}
	for len(p.data[stalled]) < h2Window {
		p.next()
	}
	begin := time.Now()
	for i := range 20 {
		e.putLabelled("b", "flowing", 1<<10)
		p.wantEvents(flowing, i+1)
	}
	if waited := time.Since(begin); e.setup.FakeTime && waited > 0 {
		e.Errorf("the other stream waited %v", waited)
	}
	if n := len(p.data[stalled]); n > h2Window {
		e.Errorf("the stalled stream got %d bytes with a window of %d", n, h2Window)
	}
	p.must(p.framer.WriteWindowUpdate(stalled, 1<<20))
	p.wantEvents(stalled, 2)
}

// h2WindowDrip: the window is opened by one byte a time, and each brings one byte. How long a server bears that is its own affair.
func h2WindowDrip(e *env) {
	p := e.h2Peer(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.watch(1, from(e.put("a")))
	p.until(isHeadersOf(1))
	e.put("a")
	for p.events(1) == 0 {
		p.must(p.framer.WriteWindowUpdate(1, 1))
		before := len(p.data[1])
		for len(p.data[1]) == before {
			if f := p.next(); isResetOf(1)(f) {
				e.Fatalf("the stream was reset after %d bytes that came one by one", before)
			}
		}
		if got := len(p.data[1]) - before; got != 1 {
			e.Fatalf("got %d bytes for a window of one", got)
		}
		if e.setup.FakeTime {
			<-time.After(time.Millisecond)
		}
	}
}

func h2SettingsShrink(e *env) {
	const first, shrunk = 1000, 100
	p := e.h2Peer(http2.Setting{ID: http2.SettingInitialWindowSize, Val: first})
	p.watch(1, from(e.put("a")))
	p.until(isHeadersOf(1))
	e.putLabelled("a", "anybody", 3*first)
	for len(p.data[1]) < first {
		p.next()
	}
	// The window is 900 below zero now, then zero.
	p.must(p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: shrunk}))
	p.barrier()
	p.must(p.framer.WriteWindowUpdate(1, first-shrunk))
	p.barrier()
	if n := len(p.data[1]); n != first {
		e.Errorf("got %d bytes, want %d: the window is used up", n, first)
	}
	p.must(p.framer.WriteWindowUpdate(1, 10*first))
	p.wantEvents(1, 1)
}
