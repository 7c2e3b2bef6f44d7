package cases

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
)

// takesTime skips the case in real time where a bubble runs it, too.
func (e *env) takesTime() {
	if !e.setup.FakeTime && e.target.SupportsFakeTime {
		e.Skipf("it takes time: a bubble runs it")
	}
}

// inTime holds how long something took since start against what it should take: a tenth more or less, and in real time what a busy
// machine adds.
func (e *env) inTime(start time.Time, want time.Duration) {
	e.Helper()
	took, late := time.Since(start), want/10
	if !e.setup.FakeTime {
		late += time.Second
	}
	if took < want-want/10 || took > want+late {
		e.Errorf("the watch ended after %v, want %v", took, want)
	}
}

func timeoutSeconds(e *env) {
	e.takesTime()
	seconds := []int{1, 10, 300}
	if !e.setup.FakeTime {
		seconds = seconds[:1]
	}
	for _, n := range seconds {
		start := time.Now()
		s := e.dial(fmt.Sprintf("timeoutSeconds=%d", n))
		for {
			w, err := s.Receive() // of what there is before
			if err == io.EOF {
				break
			}
			if err != nil || w.Type == "ERROR" {
				e.Fatalf("got %s %s, %v; want a clean end", w.Type, w.Object, err)
			}
		}
		e.inTime(start, time.Duration(n)*time.Second)
	}
}

func timeoutCleanEnd(e *env) {
	e.takesTime()
	a := e.watch("timeoutSeconds=1")
	a.accepted()
	if a.on != "ws" {
		a.all() // fails where the last chunk or END_STREAM is missing
		return
	}
	if code, err := closeCode(a.body); err != nil || code != closedNormally {
		e.Errorf("got close code %d, %v; want %d", code, err, closedNormally)
	}
}

func timeoutBadValues(e *env) {
	for _, value := range []string{"abc", "-1", "1.5", "1e3", "10s", "0x10", "99999999999999999999", "-", "١"} {
		s := e.watch("timeoutSeconds="+url.QueryEscape(value)).refused(http.StatusBadRequest, "BadRequest")
		if !strings.Contains(s.Message, "timeoutSeconds") {
			e.Errorf("%q: got message %q, want one that names the parameter", value, s.Message)
		}
		e.list("timeoutSeconds="+url.QueryEscape(value)).refused(http.StatusBadRequest, "BadRequest")
	}
	e.watch("timeoutSeconds=0").accepted() // is as good as none
	e.watch("timeoutSeconds=").accepted()
}

func timeoutDefaultJitter(e *env) {
	const watches = 16
	var wg sync.WaitGroup
	var lasted [watches]time.Duration
	start := time.Now()
	for i := range watches {
		s := e.dial("")
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

// writeEvery writes a change each pause, until the function it returns is called.
func (e *env) writeEvery(pause time.Duration) (stop func()) {
	var wg sync.WaitGroup
	quit := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-time.After(pause):
			}
			if _, err := e.tryPut("busy"); err != nil {
				e.Errorf("put: %v", err)
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(quit)
		wg.Wait()
	})
}

func timeoutWhileBusy(e *env) {
	e.takesTime()
	seconds := 1
	if e.setup.FakeTime {
		seconds = 20
	}
	const pause = 20 * time.Millisecond
	stop := e.writeEvery(pause)
	defer stop()
	start := time.Now()
	s := e.dial(fmt.Sprintf("timeoutSeconds=%d&%s", seconds, from(e.put("a"))))
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
	e.inTime(start, time.Duration(seconds)*time.Second)
	if events == 0 {
		e.Error("the watch was not busy")
	}
}

func clientIdle(e *env) {
	const limit = 3 * time.Minute // two and a half and a while to come back
	script, at := e.play(e.fallsSilent(added("a", "5")), e.fallsSilent(added("a", "5"), added("b", "6")), e.fallsSilent())
	w := e.follow(e.remote(at), 1)
	for _, want := range []string{"a", "b"} {
		if got, err := e.nextOf(w); err != nil || got.Object.Key.Name != want {
			e.Fatalf("got %v, %v; want %s", got, err, want)
		}
	}
	times := script.times()
	if pause := times[1].Sub(times[0]); pause < 10*time.Second || pause > limit {
		e.Errorf("the client came back after %v of silence, want at most %v, and not for a mere pause", pause, limit)
	}
}

// mostSilence is how long a stream may be silent: proxies cut after a minute.
const mostSilence = 45 * time.Second

func heartbeat(e *env) {
	var beat func() error
	switch e.on {
	case "h1":
		a := e.watch("", "Accept", "text/event-stream")
		a.accepted()
		beat = func() error {
			for {
				if line, err := a.body.ReadString('\n'); err != nil || strings.HasPrefix(line, ":") {
					return err
				}
			}
		}
	case "h2":
		p := e.h2Peer()
		p.watch(1, "")
		p.until(isHeadersOf(1))
		beat = func() error {
			p.until(func(f http2.Frame) bool { return f.Header().Type == http2.FramePing })
			return nil
		}
	case "ws":
		a := e.watch("")
		a.accepted()
		beat = func() error {
			op, payload := a.message()
			if op != opPing {
				return fmt.Errorf("got opcode %d, want a ping", op)
			}
			pong := wsFrame{first: bitFinal | opPong, masked: true, payload: payload}
			_, err := a.conn.Write(pong.bytes())
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

func pongMissing(e *env) {
	start := time.Now()
	a := e.watch("")
	a.accepted()
	if op, _ := a.message(); op != opPing {
		e.Fatalf("got opcode %d, want a ping", op)
	}
	_, _ = io.Copy(io.Discard, a.body) // a reset is as good as an end
	if took := time.Since(start); took > time.Minute {
		e.Errorf("a client that answers no ping was cut off after %v, want at most a minute", took)
	}

	// The client's end answers: it is there after many pings.
	s := e.dial(from(e.put("a")))
	e.later(10*time.Minute, "b")
	s.want("ADDED b")
}

// later writes an object after a while.
func (e *env) later(wait time.Duration, name string) {
	done := make(chan struct{})
	e.Cleanup(func() { <-done })
	time.AfterFunc(wait, func() {
		defer close(done)
		if _, err := e.tryPut(name); err != nil {
			e.Errorf("put: %v", err)
		}
	})
}
