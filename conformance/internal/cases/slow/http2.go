package slow

import (
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/h2peer"
)

func h2WindowZero(e *harness.Env) {
	const stalled, flowing = 1, 3
	start := e.Put("a", "to", "stalled")
	p := e.DialHTTP2()
	p.OpenConnectionWindow()
	p.Watch(stalled, harness.LabelSelector("to=stalled")+"&"+harness.From(start))
	p.ReadUntil(h2peer.IsHeaders(stalled))
	p.Watch(flowing, harness.LabelSelector("to=flowing")+"&"+harness.From(start))
	p.ReadUntil(h2peer.IsHeaders(flowing))

	for range 2 {
		e.PutLabelled("a", "stalled", harness.HTTP2StreamWindow)
	}
	for len(p.Data[stalled]) < harness.HTTP2StreamWindow {
		p.Read()
	}
	begin := time.Now()
	for i := range 20 {
		e.PutLabelled("b", "flowing", 1<<10)
		p.WantEvents(flowing, i+1)
	}
	if waited := time.Since(begin); e.Setup.FakeTime && waited > 0 {
		e.Errorf("the other stream waited %v because one stream was stalled", waited)
	}
	if n := len(p.Data[stalled]); n > harness.HTTP2StreamWindow {
		e.Errorf("the stalled stream got %d bytes with a window of %d", n, harness.HTTP2StreamWindow)
	}
	p.Must(p.Framer.WriteWindowUpdate(stalled, 1<<20))
	p.WantEvents(stalled, 2)
}

// h2WindowDrip enlarges the window by one byte at a time, and expects one more byte of the
// event each time.
func h2WindowDrip(e *harness.Env) {
	p := e.DialHTTP2(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.Watch(1, harness.From(e.Put("a")))
	p.ReadUntil(h2peer.IsHeaders(1))
	e.Put("a")
	for p.EventCount(1) == 0 {
		p.Must(p.Framer.WriteWindowUpdate(1, 1))
		before := len(p.Data[1])
		for len(p.Data[1]) == before {
			if f := p.Read(); h2peer.IsReset(1)(f) {
				e.Fatalf("the stream was reset after %d single bytes", before)
			}
		}
		if got := len(p.Data[1]) - before; got != 1 {
			e.Fatalf("got %d bytes after the window grew by one byte", got)
		}
		if e.Setup.FakeTime {
			<-time.After(time.Millisecond)
		}
	}
}

func h2SettingsShrink(e *harness.Env) {
	const first, shrunk = 1000, 100
	p := e.DialHTTP2(http2.Setting{ID: http2.SettingInitialWindowSize, Val: first})
	p.Watch(1, harness.From(e.Put("a")))
	p.ReadUntil(h2peer.IsHeaders(1))
	e.PutLabelled("a", "anybody", 3*first)
	for len(p.Data[1]) < first {
		p.Read()
	}
	// The new setting makes the window -900, and the WINDOW_UPDATE raises it to zero.
	p.Must(p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: shrunk}))
	p.AwaitServer()
	p.Must(p.Framer.WriteWindowUpdate(1, first-shrunk))
	p.AwaitServer()
	if n := len(p.Data[1]); n != first {
		e.Errorf("got %d bytes, want %d, because the window is exhausted", n, first)
	}
	p.Must(p.Framer.WriteWindowUpdate(1, 10*first))
	p.WantEvents(1, 1)
}
