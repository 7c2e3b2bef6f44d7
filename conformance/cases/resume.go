package cases

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// from is the query of a watch that starts after v.
func from(v listwatch.Version) string { return "resourceVersion=" + v.String() }

func fromRV(e *env) {
	start := e.put("a")
	b, a, gone := e.put("b"), e.put("a"), e.delete("b")
	got := e.dial(from(start)).want("ADDED b", "MODIFIED a", "DELETED b")
	if want := []listwatch.Version{b, a, gone}; !slices.Equal(versions(got), want) {
		e.Errorf("got versions %d, want %d", versions(got), want)
	}
}

// restart reads a history in sessions of one to three events, each on a new connection.
func restart(e *env) { resumeOver(e, []*env{e}) }

// crossTransport is restart with every session on another transport.
func crossTransport(e *env) {
	sessions := []*env{e}
	for _, w := range e.others() {
		sessions = append(sessions, e.over(w))
	}
	resumeOver(e, sessions)
}

// crossReplica is restart with every session at another server.
func crossReplica(e *env) { resumeOver(e, []*env{e, e.replica()}) }

func resumeOver(e *env, sessions []*env) {
	at := e.put("a")
	last := at
	for i := range 12 {
		session := sessions[i%len(sessions)].dial(from(at))
		last = e.put("a")
		if i%2 == 0 {
			last = e.put("b")
		}
		for range 1 + i%3 {
			if at == last {
				break
			}
			// Every version is a write to this collection, so the next event is that of the next version.
			if got := session.next().Version; got != at+1 {
				e.Fatalf("session %d (%s): got version %d after %d", i, session.way.name, got, at)
			}
			at++
		}
		session.Close()
		last = e.put("c") // while nobody watches
	}
	if s := e.dial(from(at)); at < last && s.next().Version != at+1 {
		e.Errorf("the last session does not go on after %d", at)
	}
}

func rvUnset(e *env) {
	for range 50 {
		e.put("a")
		acked := e.put("b")
		s := e.dial("")
		if got := s.want("ADDED a", "ADDED b")[1].Version; got != acked {
			e.Fatalf("the state has b at %d, but the write of %d was acknowledged before the request", got, acked)
		}
		next := e.put("b")
		if got := s.want("MODIFIED b")[0].Version; got != next {
			e.Fatalf("got version %d, want %d", got, next)
		}
		s.Close()
	}
}

func rvZero(e *env) {
	e.put("a")
	e.put("b")
	state := map[string]listwatch.Version{}
	s := e.dial("resourceVersion=0")
	changed := e.put("a")
	// The state may be any there was; what follows must make it the present one.
	for state["a"] != changed {
		ev := s.next()
		name := ev.Object.Key.Name
		switch old, known := state[name]; {
		case known && (ev.Type != listwatch.Modified || ev.Version <= old), !known && ev.Type != listwatch.Added:
			e.Fatalf("got %s at %d, where the state was %v", line(ev), ev.Version, state)
		}
		state[name] = ev.Version
	}
	if diff := cmp.Diff(e.stateAt(changed), state); diff != "" {
		e.Errorf("state after the watch's events (-want +got):\n%s", diff)
	}
}

func rvExactNoSynthetic(e *env) {
	e.put("a")
	s := e.dial(from(e.put("b")))
	if before := s.until(e.sentinel()); len(before) != 0 {
		e.Errorf("got %q at %d first, want nothing but later writes", line(before[0]), before[0].Version)
	}
}

func expired(e *env) {
	old := e.put("a")
	e.put("a")
	e.compact()
	for _, v := range []listwatch.Version{1, old} {
		err := e.dial(from(v)).wantError(listwatch.Expired)
		if err.Status != http.StatusGone || err.Reason != "Expired" {
			e.Errorf("from %d: got status %d and reason %s, want 410 and Expired", v, err.Status, err.Reason)
		}
	}
	e.list(from(old)+"&resourceVersionMatch=Exact").refused(http.StatusGone, "Expired")
}

// expiredNeverSkips starts at every version around the edge of the window.
func expiredNeverSkips(e *env) {
	first := e.put("a")
	for range 30 {
		e.put("a")
		e.put("b")
	}
	edge := e.newest()
	e.compact()
	sweep(e, first-2, func(floor listwatch.Version) bool { return floor == edge })
}

// expiredBytesNeverSkips is the same where the window slides by its size.
func expiredBytesNeverSkips(e *env) {
	first := e.put("a")
	for range 80 {
		e.put("a")
		e.put("b")
	}
	sweep(e, first-2, func(floor listwatch.Version) bool { return floor > first })
}

// sweep watches from every version since first. Below some floor it must be 410; from there on every event after the start must come.
// The floor must be sound.
func sweep(e *env, first listwatch.Version, sound func(floor listwatch.Version) bool) {
	e.Helper()
	var floor listwatch.Version // the oldest start that was served
	last := e.put("a")
	for start := first; start < last; start++ {
		s := e.dial(from(start))
		at := start
		for at < last {
			w, err := s.Receive()
			if err != nil {
				e.Fatalf("from %d, at %d: %v", start, at, err)
			}
			ev, err := w.Event()
			if errors.Is(err, listwatch.Expired) && at == start && floor == 0 {
				break
			}
			if err != nil || ev.Version != at+1 {
				e.Fatalf("from %d (floor %d): got %s of version %d after %d, %v", start, floor, w.Type, ev.Version, at, err)
			}
			at++
		}
		if at == last && floor == 0 {
			floor = start
		}
		s.Close()
	}
	if !sound(floor) {
		e.Errorf("the oldest version that could be watched from was %d, of %d to %d", floor, first, last)
	}
}

func compactWhileWatching(e *env) {
	all, selective := e.dial("resourceVersion=0"), e.dial("resourceVersion=0&labelSelector=on%3Dyes")
	e.put("a", "on", "yes")
	all.want("ADDED a")
	selective.want("ADDED a")
	for range 20 {
		e.put("b", "on", "no")
		all.next()
	}
	e.compact()
	changed := e.put("a", "on", "yes")
	for name, s := range map[string]*stream{"all": all, "selective": selective} {
		if got := s.want("MODIFIED a")[0].Version; got != changed {
			e.Errorf("%s: got version %d after the compaction, want %d", name, got, changed)
		}
	}
}

// expiredDuringReplay: what is written is more than connections hold, so readers have left some of it behind when the window goes: one
// that replays it, and one that was there all the time.
func expiredDuringReplay(e *env) {
	start := e.put("a")
	live := e.dial(from(start) + "&" + labelled("!nothing")) // another selector: the server must not keep one's place for the other
	padding := strings.Repeat("x", 4<<10)
	const count = 400
	for range count {
		e.putPadded("a", padding)
	}
	replaying := e.dial(from(start))
	for _, s := range []*stream{live, replaying} {
		if got := s.want("MODIFIED a")[0].Version; got != start+1 {
			e.Fatalf("got version %d first, want %d", got, start+1)
		}
	}
	e.compact()
	for name, s := range map[string]*stream{"live": live, "replaying": replaying} {
		at := start + 1
		w, err := s.Receive()
		for ; err == nil && w.Type == "MODIFIED"; w, err = s.Receive() {
			ev, err := w.Event()
			if err != nil || ev.Version != at+1 {
				e.Fatalf("%s: got version %d after %d, %v", name, ev.Version, at, err)
			}
			at++
		}
		if err != nil || !errors.Is(listwatch.ParseStatus(w.Object), listwatch.Expired) {
			e.Fatalf("%s: got %s %s, %v after version %d; want an ERROR that says Expired", name, w.Type, w.Object, err, at)
		}
		s.wantEnd()
		if at == start+count {
			e.Errorf("%s: the whole history came: the window did not overrun the reader", name)
		}
	}
}

func futureRV(e *env) {
	now := e.put("a")
	if e.setup.FakeTime {
		start := time.Now()
		err := e.dial(from(now + 100)).wantError(listwatch.NotYet)
		if took := time.Since(start); took > 4*time.Second {
			e.Errorf("told after %v, want a few seconds", took)
		}
		if err.Status != http.StatusGatewayTimeout || err.RetryAfter() != time.Second || err.Details.Causes[0].Reason != listwatch.CauseTooLarge {
			e.Errorf("got %+v %+v, want 504 with cause ResourceVersionTooLarge and a time to wait", err, err.Details)
		}
		return
	}
	s := e.dial(from(now + 2))
	for range 4 {
		e.put("a")
	}
	for want := now + 3; want <= now+4; want++ {
		if got := s.want("MODIFIED a")[0].Version; got != want {
			e.Fatalf("asked for what comes after %d: got version %d, want %d", now+2, got, want)
		}
	}
}

func listFutureRV(e *env) {
	future := e.put("a") + 100
	for _, match := range []string{"", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact"} {
		start := time.Now()
		a := e.list(from(future) + match)
		s := a.refused(http.StatusGatewayTimeout, "Timeout")
		if s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Reason != listwatch.CauseTooLarge {
			e.Errorf("%s: got details %+v, want the cause ResourceVersionTooLarge", match, s.Details)
		}
		if got := a.header.Get("Retry-After"); got != "1" {
			e.Errorf("%s: got Retry-After %q, want 1", match, got)
		}
		if took := time.Since(start); took > 4*time.Second {
			e.Errorf("%s: refused after %v, want a few seconds", match, took)
		}
	}
}

func badRV(e *env) {
	for _, rv := range []string{"abc", "-1", "1.5", "18446744073709551616", "0x10", "%201", "1%20", "01", "00", "%2B1", "1e3", "%D9%A1", "1,2"} {
		e.watch("resourceVersion="+rv).refused(http.StatusBadRequest, "BadRequest")
		e.list("resourceVersion="+rv).refused(http.StatusBadRequest, "BadRequest")
	}
}

// decimal is a number below 10^38, which is less than 2^128.
var decimal = regexp.MustCompile(`^[1-9][0-9]{0,37}$`)

func rvComparable(e *env) {
	s := e.dial("resourceVersion=0")
	last := listwatch.Version(0)
	for i := range 20 {
		if e.put("a"); i%5 == 4 {
			s.next()
			e.delete("a")
		}
		ev := s.next()
		rv := ev.Object.Version.String()
		if !decimal.MatchString(rv) || ev.Version <= last || !strings.Contains(string(ev.Object.Data), `"resourceVersion":"`+rv+`"`) {
			e.Fatalf("got %s after %d, want a greater decimal number", ev.Object.Data, last)
		}
		last = ev.Version
	}
}

// serverRestart is what a store in memory must keep of it: it forgets, and says so.
func serverRestart(e *env) {
	first, last := e.put("a"), e.put("b")
	other := e.again() // a process that starts later
	if v := other.put("a"); v <= last {
		e.Errorf("after the restart version %d is used again: the first life ended at %d", v, last)
	}
	for _, v := range []listwatch.Version{first, last} {
		other.dial(from(v)).wantError(listwatch.Expired)
	}
	if e.watch("").header.Get(transport.EpochHeader) == other.watch("").header.Get(transport.EpochHeader) {
		e.Error("both lives have one epoch")
	}
}

func lastEventID(e *env) {
	e.watchIn(sseType, "") // skips where there is no SSE
	a := e.put("a")
	b := e.put("b")
	e.put("c")
	resume := func(query string, id listwatch.Version) *stream {
		return e.dialAs(query, transport.Request{
			Header: http.Header{"Last-Event-Id": {id.String()}}, Framings: []framing.Framer{framing.SSE{}},
		})
	}
	resume("", a).want("ADDED b", "ADDED c")
	resume("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", b).want("ADDED c")
	resume(from(b), b).want("ADDED c")
	for _, query := range []string{from(a), "resourceVersion=0"} {
		e.watch(query, "Last-Event-ID", b.String(), "Accept", "text/event-stream").refused(http.StatusBadRequest, "BadRequest")
	}
	for _, id := range []string{"abc", "0", "-1", "1.5"} {
		e.watch("", "Last-Event-ID", id).refused(http.StatusBadRequest, "BadRequest")
	}
	// Ids of the stream itself, as a browser would send them.
	s := resume("", a)
	w, err := s.Receive()
	if err != nil || w.Version != b {
		e.Fatalf("got an event with id %d, %v; want %d", w.Version, err, b)
	}
	positioned, ok := s.Receiver.(interface{ LastEventID() string })
	if !ok || positioned.LastEventID() != b.String() {
		e.Error("the receiver does not tell the id of the last event")
	}
}

// slidingWindow holds a part of what expiredBytesNeverSkips writes.
var slidingWindow = Setup{HistoryBytes: 16 << 10}

// putPadded is put with an object that is large.
func (e *env) putPadded(name, padding string) {
	e.Helper()
	if _, err := e.tryPutSpec(name, nil, map[string]any{"padding": padding}); err != nil {
		e.Fatal(err)
	}
}
