package resume

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

func fromRV(e *harness.Env) {
	start := e.Put("a")
	b, a, gone := e.Put("b"), e.Put("a"), e.Delete("b")
	got := e.Dial(harness.From(start)).Want("ADDED b", "MODIFIED a", "DELETED b")
	if want := []listwatch.Version{b, a, gone}; !slices.Equal(harness.Versions(got), want) {
		e.Errorf("got versions %d, want %d", harness.Versions(got), want)
	}
}

// restart reads a history in sessions of one to three events, each on a new connection.
func restart(e *harness.Env) { resumeOver(e, []*harness.Env{e}) }

// crossTransport is restart with every session on another transport.
func crossTransport(e *harness.Env) {
	sessions := []*harness.Env{e}
	for _, w := range e.OtherVariants() {
		sessions = append(sessions, e.WithVariant(w))
	}
	resumeOver(e, sessions)
}

// crossReplica is restart with every session at another server.
func crossReplica(e *harness.Env) { resumeOver(e, []*harness.Env{e, e.WithReplica()}) }

func resumeOver(e *harness.Env, sessions []*harness.Env) {
	at := e.Put("a")
	last := at
	for i := range 12 {
		session := sessions[i%len(sessions)].Dial(harness.From(at))
		last = e.Put("a")
		if i%2 == 0 {
			last = e.Put("b")
		}
		for range 1 + i%3 {
			if at == last {
				break
			}
			// Every version is a write to this collection, so the next event is that of the next version.
			if got := session.Next().Version; got != at+1 {
				e.Fatalf("session %d (%s): got version %d after %d", i, session.Variant.Name, got, at)
			}
			at++
		}
		session.Close()
		last = e.Put("c") // while nobody watches
	}
	if s := e.Dial(harness.From(at)); at < last && s.Next().Version != at+1 {
		e.Errorf("the last session does not go on after %d", at)
	}
}

func rvUnset(e *harness.Env) {
	for range 50 {
		e.Put("a")
		acked := e.Put("b")
		s := e.Dial("")
		if got := s.Want("ADDED a", "ADDED b")[1].Version; got != acked {
			e.Fatalf("the state has b at %d, but the write of %d was acknowledged before the request", got, acked)
		}
		next := e.Put("b")
		if got := s.Want("MODIFIED b")[0].Version; got != next {
			e.Fatalf("got version %d, want %d", got, next)
		}
		s.Close()
	}
}

func rvZero(e *harness.Env) {
	e.Put("a")
	e.Put("b")
	state := map[string]listwatch.Version{}
	s := e.Dial("resourceVersion=0")
	changed := e.Put("a")
	// The state may be any there was; what follows must make it the present one.
	for state["a"] != changed {
		ev := s.Next()
		name := ev.Object.Key.Name
		switch old, known := state[name]; {
		case known && (ev.Type != listwatch.Modified || ev.Version <= old), !known && ev.Type != listwatch.Added:
			e.Fatalf("got %s at %d, where the state was %v", harness.Line(ev), ev.Version, state)
		}
		state[name] = ev.Version
	}
	if diff := cmp.Diff(e.StateAt(changed), state); diff != "" {
		e.Errorf("state after the watch's events (-want +got):\n%s", diff)
	}
}

func rvExactNoSynthetic(e *harness.Env) {
	e.Put("a")
	s := e.Dial(harness.From(e.Put("b")))
	if before := s.ReadUntil(e.PutSentinel()); len(before) != 0 {
		e.Errorf("got %q at %d first, want nothing but later writes", harness.Line(before[0]), before[0].Version)
	}
}

func expired(e *harness.Env) {
	old := e.Put("a")
	e.Put("a")
	e.CompactHistory()
	for _, v := range []listwatch.Version{1, old} {
		err := e.Dial(harness.From(v)).WantError(listwatch.Expired)
		if err.Status != http.StatusGone || err.Reason != "Expired" {
			e.Errorf("from %d: got status %d and reason %s, want 410 and Expired", v, err.Status, err.Reason)
		}
	}
	e.ListRaw(harness.From(old)+"&resourceVersionMatch=Exact").WantRefused(http.StatusGone, "Expired")
}

// expiredNeverSkips starts at every version around the edge of the window.
func expiredNeverSkips(e *harness.Env) {
	first := e.Put("a")
	for range 30 {
		e.Put("a")
		e.Put("b")
	}
	edge := e.Newest()
	e.CompactHistory()
	sweep(e, first-2, func(floor listwatch.Version) bool { return floor == edge })
}

// expiredBytesNeverSkips is the same where the window slides by its size.
func expiredBytesNeverSkips(e *harness.Env) {
	first := e.Put("a")
	for range 80 {
		e.Put("a")
		e.Put("b")
	}
	sweep(e, first-2, func(floor listwatch.Version) bool { return floor > first })
}

// sweep watches from every version since first. Below some floor it must be 410; from there on every event after the start must come.
// The floor must be sound.
func sweep(e *harness.Env, first listwatch.Version, sound func(floor listwatch.Version) bool) {
	e.Helper()
	var floor listwatch.Version // the oldest start that was served
	last := e.Put("a")
	for start := first; start < last; start++ {
		s := e.Dial(harness.From(start))
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

func compactWhileWatching(e *harness.Env) {
	all, selective := e.Dial("resourceVersion=0"), e.Dial("resourceVersion=0&labelSelector=on%3Dyes")
	e.Put("a", "on", "yes")
	all.Want("ADDED a")
	selective.Want("ADDED a")
	for range 20 {
		e.Put("b", "on", "no")
		all.Next()
	}
	e.CompactHistory()
	changed := e.Put("a", "on", "yes")
	for name, s := range map[string]*harness.Watch{"all": all, "selective": selective} {
		if got := s.Want("MODIFIED a")[0].Version; got != changed {
			e.Errorf("%s: got version %d after the compaction, want %d", name, got, changed)
		}
	}
}

// expiredDuringReplay: what is written is more than connections hold, so readers have left some of it behind when the window goes: one
// that replays it, and one that was there all the time.
func expiredDuringReplay(e *harness.Env) {
	start := e.Put("a")
	live := e.Dial(harness.From(start) + "&" + harness.LabelSelector("!nothing")) // another selector: the server must not keep one's place for the other
	padding := strings.Repeat("x", 4<<10)
	const count = 400
	for range count {
		e.PutPadded("a", padding)
	}
	replaying := e.Dial(harness.From(start))
	for _, s := range []*harness.Watch{live, replaying} {
		if got := s.Want("MODIFIED a")[0].Version; got != start+1 {
			e.Fatalf("got version %d first, want %d", got, start+1)
		}
	}
	e.CompactHistory()
	for name, s := range map[string]*harness.Watch{"live": live, "replaying": replaying} {
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
		s.WantEnd()
		if at == start+count {
			e.Errorf("%s: the whole history came: the window did not overrun the reader", name)
		}
	}
}

func futureRV(e *harness.Env) {
	now := e.Put("a")
	if e.Setup.FakeTime {
		start := time.Now()
		err := e.Dial(harness.From(now + 100)).WantError(listwatch.NotYet)
		if took := time.Since(start); took > 4*time.Second {
			e.Errorf("told after %v, want a few seconds", took)
		}
		if err.Status != http.StatusGatewayTimeout || err.RetryAfter() != time.Second || err.Details.Causes[0].Reason != listwatch.CauseTooLarge {
			e.Errorf("got %+v %+v, want 504 with cause ResourceVersionTooLarge and a time to wait", err, err.Details)
		}
		return
	}
	s := e.Dial(harness.From(now + 2))
	for range 4 {
		e.Put("a")
	}
	for want := now + 3; want <= now+4; want++ {
		if got := s.Want("MODIFIED a")[0].Version; got != want {
			e.Fatalf("asked for what comes after %d: got version %d, want %d", now+2, got, want)
		}
	}
}

func listFutureRV(e *harness.Env) {
	future := e.Put("a") + 100
	for _, match := range []string{"", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact"} {
		start := time.Now()
		a := e.ListRaw(harness.From(future) + match)
		s := a.WantRefused(http.StatusGatewayTimeout, "Timeout")
		if s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Reason != listwatch.CauseTooLarge {
			e.Errorf("%s: got details %+v, want the cause ResourceVersionTooLarge", match, s.Details)
		}
		if got := a.Headers.Get("Retry-After"); got != "1" {
			e.Errorf("%s: got Retry-After %q, want 1", match, got)
		}
		if took := time.Since(start); took > 4*time.Second {
			e.Errorf("%s: refused after %v, want a few seconds", match, took)
		}
	}
}

func badRV(e *harness.Env) {
	for _, rv := range []string{"abc", "-1", "1.5", "18446744073709551616", "0x10", "%201", "1%20", "01", "00", "%2B1", "1e3", "%D9%A1", "1,2"} {
		e.WatchRaw("resourceVersion="+rv).WantRefused(http.StatusBadRequest, "BadRequest")
		e.ListRaw("resourceVersion="+rv).WantRefused(http.StatusBadRequest, "BadRequest")
	}
}

// decimal is a number below 10^38, which is less than 2^128.
var decimal = regexp.MustCompile(`^[1-9][0-9]{0,37}$`)

func rvComparable(e *harness.Env) {
	s := e.Dial("resourceVersion=0")
	last := listwatch.Version(0)
	for i := range 20 {
		if e.Put("a"); i%5 == 4 {
			s.Next()
			e.Delete("a")
		}
		ev := s.Next()
		rv := ev.Object.Version.String()
		if !decimal.MatchString(rv) || ev.Version <= last || !strings.Contains(string(ev.Object.Data), `"resourceVersion":"`+rv+`"`) {
			e.Fatalf("got %s after %d, want a greater decimal number", ev.Object.Data, last)
		}
		last = ev.Version
	}
}

// serverRestart is what a store in memory must keep of it: it forgets, and says so.
func serverRestart(e *harness.Env) {
	first, last := e.Put("a"), e.Put("b")
	other := e.WithNewCollection() // a process that starts later
	if v := other.Put("a"); v <= last {
		e.Errorf("after the restart version %d is used again: the first life ended at %d", v, last)
	}
	for _, v := range []listwatch.Version{first, last} {
		other.Dial(harness.From(v)).WantError(listwatch.Expired)
	}
	if e.WatchRaw("").Headers.Get(transport.EpochHeader) == other.WatchRaw("").Headers.Get(transport.EpochHeader) {
		e.Error("both lives have one epoch")
	}
}

func lastEventID(e *harness.Env) {
	e.WatchRawIn(harness.SSEMediaType, "") // skips where there is no SSE
	a := e.Put("a")
	b := e.Put("b")
	e.Put("c")
	resume := func(query string, id listwatch.Version) *harness.Watch {
		return e.DialRequest(query, transport.Request{
			Header: http.Header{"Last-Event-Id": {id.String()}}, Framings: []framing.Framer{framing.SSE{}},
		})
	}
	resume("", a).Want("ADDED b", "ADDED c")
	resume("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", b).Want("ADDED c")
	resume(harness.From(b), b).Want("ADDED c")
	for _, query := range []string{harness.From(a), "resourceVersion=0"} {
		e.WatchRaw(query, "Last-Event-ID", b.String(), "Accept", "text/event-stream").WantRefused(http.StatusBadRequest, "BadRequest")
	}
	for _, id := range []string{"abc", "0", "-1", "1.5"} {
		e.WatchRaw("", "Last-Event-ID", id).WantRefused(http.StatusBadRequest, "BadRequest")
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
var slidingWindow = harness.Setup{HistoryBytes: 16 << 10}
