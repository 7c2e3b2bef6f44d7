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
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/internal/h2peer"
)

// skipIfSlow skips a run in real time if the case also runs with a fake clock.
func skipIfSlow(e *harness.Env) {
	if !e.Setup.FakeTime && e.Target.SupportsFakeTime {
		e.Skipf("slow in real time: the case also runs with a fake clock")
	}
}

// wantDuration checks that the time since start is about the given duration.
func wantDuration(e *harness.Env, start time.Time, want time.Duration) {
	e.Helper()
	if took := time.Since(start); took < want-want/10 || took > maxDuration(e, want) {
		e.Errorf("the watch ended after %v, want about %v", took, want)
	}
}

// maxDuration returns the time that a watch with the given timeout may last: a tenth longer, and in
// real time also longer by Patience, because the machine may be busy.
func maxDuration(e *harness.Env, want time.Duration) time.Duration {
	if e.Setup.FakeTime {
		return want + want/10
	}
	return want + want/10 + e.Patience()
}

func timeoutSeconds(e *harness.Env) {
	skipIfSlow(e)
	seconds := []int{1, 10, 300}
	if !e.Setup.FakeTime {
		seconds = seconds[:1]
	}
	for _, n := range seconds {
		start := time.Now()
		s := e.Dial(fmt.Sprintf("timeoutSeconds=%d", n))
		for {
			w, err := s.Receive() // ignores the initial events
			if err == io.EOF {
				break
			}
			if err != nil || w.Type == "ERROR" {
				e.Fatalf("got %s %s, %v; want a clean end", w.Type, w.Object, err)
			}
		}
		wantDuration(e, start, time.Duration(n)*time.Second)
	}
}

func timeoutCleanEnd(e *harness.Env) {
	skipIfSlow(e)
	a := e.WatchRaw("timeoutSeconds=1")
	a.WantAccepted()
	if a.Transport != "ws" {
		a.ReadAll() // fails if the last chunk or END_STREAM is missing
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
	e.WatchRaw("timeoutSeconds=0").WantAccepted() // zero means no timeout
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
	if shortest < minTimeout || longest > 2*minTimeout+time.Second {
		e.Errorf("watches ended after %v to %v, want %v to %v", shortest, longest, minTimeout, 2*minTimeout)
	}
	// The probability that 16 random times fall within a quarter of the range is about 1 in 90
	// million, and 1 in 11 million for a run of all 8 variants.
	if longest-shortest < minTimeout/4 {
		e.Errorf("all %d watches ended within %v of each other, want random times", watches, longest-shortest)
	}
}

func timeoutWhileBusy(e *harness.Env) {
	skipIfSlow(e)
	// In real time the writer may be too slow to write anything during the watch. The second Put
	// provides one event in any case.
	limit, minEvents := time.Second, 1
	if e.Setup.FakeTime {
		limit, minEvents = 20*time.Second, 2
	}
	first := e.Put("a")
	e.Put("a")
	const pause = 20 * time.Millisecond
	stop := e.WriteEvery(pause)
	defer stop()
	start := time.Now()
	s := e.Dial(fmt.Sprintf("timeoutSeconds=%d&%s", limit/time.Second, harness.From(first)))
	events := 0
	for {
		w, err := s.Receive()
		if err == io.EOF {
			break
		}
		if err != nil || w.Type == "ERROR" {
			e.Fatalf("got %s %s, %v after %d events; want a clean end", w.Type, w.Object, err, events)
		}
		if events++; time.Since(start) > maxDuration(e, limit) {
			e.Fatalf("the watch is still open after %v", time.Since(start))
		}
	}
	wantDuration(e, start, limit)
	if events < minEvents {
		e.Errorf("the watch received %d events, want at least %d", events, minEvents)
	}
}

func clientIdle(e *harness.Env) {
	// The idle timeout of 2.5 minutes, plus time to reconnect.
	limit := e.Either(3*time.Minute, harness.RealIdleTimeout+e.Patience())
	requests, route := e.ServeSequence(e.SendThenFallSilent(harness.AddedEvent("a", "5")),
		e.SendThenFallSilent(harness.AddedEvent("a", "5"), harness.AddedEvent("b", "6")), e.SendThenFallSilent())
	w := e.Follow(e.RemoteWith(route, harness.SetIdleTimeout(e)), 1)
	for _, want := range []string{"a", "b"} {
		if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != want {
			e.Fatalf("got %s, want %s", harness.Got(got, err), want)
		}
	}
	times := requests.RequestTimes()
	shortest := e.Either(10*time.Second, harness.RealIdleTimeout*9/10)
	if pause := times[1].Sub(times[0]); pause < shortest || pause > limit {
		e.Errorf("the client reconnected after %v without events, want %v to %v", pause, shortest, limit)
	}
}

// maxSilence is the time after which an idle stream must have sent something, because
// proxies close silent connections after a minute.
const maxSilence = 45 * time.Second

func heartbeat(e *harness.Env) {
	var awaitHeartbeat func() error
	switch e.Transport {
	case "h1":
		a := e.WatchRaw("", "Accept", "text/event-stream")
		a.WantAccepted()
		awaitHeartbeat = func() error {
			for {
				if line, err := a.Body.ReadString('\n'); err != nil || strings.HasPrefix(line, ":") {
					return err
				}
			}
		}
	case "h2":
		p := e.DialHTTP2()
		p.Watch(1, "")
		p.ReadUntil(h2peer.IsHeaders(1))
		awaitHeartbeat = func() error {
			p.ReadUntil(func(f http2.Frame) bool { return f.Header().Type == http2.FramePing })
			return nil
		}
	case "ws":
		a := e.WatchRaw("")
		a.WantAccepted()
		awaitHeartbeat = func() error {
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
		if err := awaitHeartbeat(); err != nil {
			e.Fatal(err)
		}
		if took := time.Since(start); took > maxSilence {
			e.Errorf("got no heartbeat for %v, want one within %v", took, maxSilence)
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
	_, _ = io.Copy(io.Discard, a.Body) // the server may also reset the connection
	if took := time.Since(start); took > time.Minute {
		e.Errorf("a client that answers no pings was disconnected after %v, want at most a minute", took)
	}

	// A client that answers pings stays connected.
	s := e.Dial(harness.From(e.Put("a")))
	later(e, 10*time.Minute, "b")
	s.Want("ADDED b")
}

// later starts a timer that writes an object after wait. The case does not end before the write.
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
