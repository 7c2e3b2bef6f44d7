package timeout

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/wsframe"
)

// takesTime skips the case in real time where a bubble runs it, too.
func takesTime(e *harness.Env) {
	if !e.Setup.FakeTime && e.Target.SupportsFakeTime {
		e.Skipf("it takes time: a bubble runs it")
	}
}

// inTime holds how long something took since start against what it should take: a tenth more or less, and in real time what a busy
// machine adds.
func inTime(e *harness.Env, start time.Time, want time.Duration) {
	e.Helper()
	took, late := time.Since(start), want/10
	if !e.Setup.FakeTime {
		late += time.Second
	}
	if took < want-want/10 || took > want+late {
		e.Errorf("the watch ended after %v, want %v", took, want)
	}
}

func timeoutSeconds(e *harness.Env) {
	takesTime(e)
	seconds := []int{1, 10, 300}
	if !e.Setup.FakeTime {
		seconds = seconds[:1]
	}
	for _, n := range seconds {
		start := time.Now()
		s := e.Dial(fmt.Sprintf("timeoutSeconds=%d", n))
		for {
			w, err := s.Receive() // of what there is before
			if err == io.EOF {
				break
			}
			if err != nil || w.Type == "ERROR" {
				e.Fatalf("got %s %s, %v; want a clean end", w.Type, w.Object, err)
			}
		}
		inTime(e, start, time.Duration(n)*time.Second)
	}
}

func timeoutCleanEnd(e *harness.Env) {
	takesTime(e)
	a := e.WatchRaw("timeoutSeconds=1")
	a.WantAccepted()
	if a.Transport != "ws" {
		a.ReadAll() // fails where the last chunk or END_STREAM is missing
		return
	}
	if code, err := wsframe.ReadCloseCode(a.Body); err != nil || code != wsframe.CloseNormal {
		e.Errorf("got close code %d, %v; want %d", code, err, wsframe.CloseNormal)
	}
}

func timeoutBadValues(e *harness.Env) {
	for _, value := range []string{"abc", "-1", "1.5", "1e3", "10s", "0x10", "99999999999999999999", "-", "١"} {
		s := e.WatchRaw("timeoutSeconds="+url.QueryEscape(value)).WantRefused(http.StatusBadRequest, "BadRequest")
		if !strings.Contains(s.Message, "timeoutSeconds") {
			e.Errorf("%q: got message %q, want one that names the parameter", value, s.Message)
		}
		e.ListRaw("timeoutSeconds="+url.QueryEscape(value)).WantRefused(http.StatusBadRequest, "BadRequest")
	}
	e.WatchRaw("timeoutSeconds=0").WantAccepted() // is as good as none
	e.WatchRaw("timeoutSeconds=").WantAccepted()
}

func timeoutDefaultJitter(e *harness.Env) {
	const watches = 16
	var wg sync.WaitGroup
	var lasted [watches]time.Duration
	start := time.Now()
	for i := range watches {
		s := e.Dial("")
		wg.Go(func() {
			if _, err := s.Receive(); err != io.EOF {
				e.Errorf("got %v, want a clean end", err)
			}
			lasted[i] = time.Since(start)
		})
	}
	wg.Wait()
	shortest, longest := slices.Min(lasted[:]), slices.Max(lasted[:])
	if shortest < leastTime || longest > 2*leastTime+time.Second {
		e.Errorf("watches ended after %v to %v, want %v to %v", shortest, longest, leastTime, 2*leastTime)
	}
	// That 16 fall within a quarter of the time by chance happens once in 10 million runs.
	if longest-shortest < leastTime/4 {
		e.Errorf("all %d watches ended within %v: want them spread", watches, longest-shortest)
	}
}

func timeoutWhileBusy(e *harness.Env) {
	takesTime(e)
	seconds := 1
	if e.Setup.FakeTime {
		seconds = 20
	}
	const pause = 20 * time.Millisecond
	stop := e.WriteEvery(pause)
	defer stop()
	start := time.Now()
	s := e.Dial(fmt.Sprintf("timeoutSeconds=%d&%s", seconds, harness.From(e.Put("a"))))
	events := 0
	for {
		w, err := s.Receive()
		if err == io.EOF {
			break
		}
		if err != nil || w.Type == "ERROR" {
			e.Fatalf("got %s %s, %v after %d events; want a clean end", w.Type, w.Object, err, events)
		}
		if events++; time.Since(start) > 2*time.Duration(seconds)*time.Second {
			e.Fatalf("the watch goes on after %v", time.Since(start))
		}
	}
	inTime(e, start, time.Duration(seconds)*time.Second)
	if events == 0 {
		e.Error("the watch was not busy")
	}
}

func clientIdle(e *harness.Env) {
	const limit = 3 * time.Minute // two and a half and a while to come back
	script, at := e.ServeInTurn(e.SendThenFallSilent(harness.AddedEvent("a", "5")), e.SendThenFallSilent(harness.AddedEvent("a", "5"), harness.AddedEvent("b", "6")), e.SendThenFallSilent())
	w := e.Follow(e.Remote(at), 1)
	for _, want := range []string{"a", "b"} {
		if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != want {
			e.Fatalf("got %v, %v; want %s", got, err, want)
		}
	}
	times := script.RequestTimes()
	if pause := times[1].Sub(times[0]); pause < 10*time.Second || pause > limit {
		e.Errorf("the client came back after %v of silence, want at most %v, and not for a mere pause", pause, limit)
	}
}

// mostSilence is how long a stream may be silent: proxies cut after a minute.
const mostSilence = 45 * time.Second

func heartbeat(e *harness.Env) {
	var beat func() error
	switch e.Transport {
	case "h1":
		a := e.WatchRaw("", "Accept", "text/event-stream")
		a.WantAccepted()
		beat = func() error {
			for {
				if line, err := a.Body.ReadString('\n'); err != nil || strings.HasPrefix(line, ":") {
					return err
				}
			}
		}
	case "h2":
		p := e.DialHTTP2()
		p.Watch(1, "")
		p.ReadUntil(harness.IsHeadersOf(1))
		beat = func() error {
			p.ReadUntil(func(f http2.Frame) bool { return f.Header().Type == http2.FramePing })
			return nil
		}
	case "ws":
		a := e.WatchRaw("")
		a.WantAccepted()
		beat = func() error {
			op, payload := a.ReadMessage()
			if op != wsframe.OpPing {
				return fmt.Errorf("got opcode %d, want a ping", op)
			}
			pong := wsframe.Frame{First: wsframe.Final | wsframe.OpPong, Masked: true, Payload: payload}
			_, err := a.Conn.Write(pong.Bytes())
			return err
		}
	}
	for range 5 {
		start := time.Now()
		if err := beat(); err != nil {
			e.Fatal(err)
		}
		if took := time.Since(start); took > mostSilence {
			e.Errorf("nothing came for %v, want something within %v", took, mostSilence)
		}
	}
}

func pongMissing(e *harness.Env) {
	start := time.Now()
	a := e.WatchRaw("")
	a.WantAccepted()
	if op, _ := a.ReadMessage(); op != wsframe.OpPing {
		e.Fatalf("got opcode %d, want a ping", op)
	}
	_, _ = io.Copy(io.Discard, a.Body) // a reset is as good as an end
	if took := time.Since(start); took > time.Minute {
		e.Errorf("a client that answers no ping was cut off after %v, want at most a minute", took)
	}

	// The client's end answers: it is there after many pings.
	s := e.Dial(harness.From(e.Put("a")))
	later(e, 10*time.Minute, "b")
	s.Want("ADDED b")
}

// later writes an object after a while.
func later(e *harness.Env, wait time.Duration, name string) {
	done := make(chan struct{})
	e.Cleanup(func() { <-done })
	time.AfterFunc(wait, func() {
		defer close(done)
		if _, err := e.TryPut(name); err != nil {
			e.Errorf("put: %v", err)
		}
	})
}
