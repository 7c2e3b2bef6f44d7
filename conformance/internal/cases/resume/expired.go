package resume

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/kubestatus"
)

func expired(e *harness.Env) {
	old := e.Put("a")
	e.Put("a")
	e.CompactHistory()
	for _, v := range []listwatch.Version{1, old} {
		err := e.Dial(harness.From(v)).WantError(listwatch.Expired)
		if err.Status != http.StatusGone || err.Reason != "Expired" {
			e.Errorf("from version %d: got status %d and reason %s, want 410 and Expired", v, err.Status, err.Reason)
		}
	}
	e.ListRaw(harness.From(old)+"&resourceVersionMatch=Exact").WantRefused(http.StatusGone, "Expired")
}

// expiredNeverSkips opens watches at every version around the start of the retained
// history.
func expiredNeverSkips(e *harness.Env) {
	first := e.Put("a")
	for range 30 {
		e.Put("a")
		e.Put("b")
	}
	edge := e.Newest()
	e.CompactHistory()
	watchFromEveryVersion(e, first, func(floor listwatch.Version) bool { return floor == edge })
}

// slidingWindow limits the history so that it retains only some of the writes of
// expiredBytesNeverSkips.
var slidingWindow = harness.Setup{HistoryBytes: 16 << 10}

// expiredBytesNeverSkips is like expiredNeverSkips, but the server drops events because of a
// limit on the size of the history.
func expiredBytesNeverSkips(e *harness.Env) {
	first := e.Put("a")
	for range 80 {
		e.Put("a")
		e.Put("b")
	}
	watchFromEveryVersion(e, first, func(floor listwatch.Version) bool { return floor > first })
}

// watchFromEveryVersion opens a watch at every version from first-2 on, except zero, which means
// any version. The floor is the first version at which a watch does not expire. Watches at the
// floor and at every later version must receive every event after their start. isValid reports
// whether the floor is acceptable.
func watchFromEveryVersion(e *harness.Env, first listwatch.Version, isValid func(floor listwatch.Version) bool) {
	e.Helper()
	var floor listwatch.Version // the oldest version from which a watch was served
	last := e.Put("a")
	for start := max(first, 3) - 2; start < last; start++ {
		s := e.Dial(harness.From(start))
		at := start
		for at < last {
			w, err := s.Receive()
			if err != nil {
				e.Fatalf("watch from version %d, after version %d: %v", start, at, err)
			}
			ev, err := w.Event()
			if errors.Is(err, listwatch.Expired) && at == start && floor == 0 {
				break
			}
			if err != nil || ev.Version != at+1 {
				e.Fatalf("watch from version %d (floor %d): got %s of version %d after version %d, %v", start, floor,
					w.Type, ev.Version, at, err)
			}
			at++
		}
		if at == last && floor == 0 {
			floor = start
		}
		s.Close()
	}
	if !isValid(floor) {
		e.Errorf("the oldest version that a watch could start from was %d, out of %d to %d", floor, first, last)
	}
}

// compactWhileWatching compacts the history while a selective watch has no pending events. First it
// waits until the source has filtered out the events that the watch does not select. On a busy
// machine this may take long, so if the watch has expired, the case tries again with a longer wait.
func compactWhileWatching(e *harness.Env) {
	const longest = 10 * time.Second
	for wait := longest / 100; ; wait *= 10 {
		start := e.Put("a", "on", "yes")
		all, selective := e.Dial(harness.From(start)), e.Dial(harness.LabelSelector("on=yes")+"&"+harness.From(start))
		e.Put("a", "on", "yes")
		all.Want("MODIFIED a")
		selective.Want("MODIFIED a")
		for range 20 {
			e.Put("b", "on", "no")
			all.Next()
		}
		<-time.After(wait)
		e.CompactHistory()
		if e.CompactEndsWatches {
			continuesAfter(e, e.Newest())
			return
		}
		changed := e.Put("a", "on", "yes")
		if got := all.Want("MODIFIED a")[0].Version; got != changed {
			e.Errorf("got version %d after the compaction, want %d", got, changed)
		}
		got, err := selective.ReceiveEvent()
		if errors.Is(err, listwatch.Expired) && wait < longest {
			continue
		}
		if err != nil || harness.EventLine(got) != "MODIFIED a" || got.Version != changed {
			e.Errorf("a selective watch: got version %d, %v after the compaction, want version %d",
				got.Version, err, changed)
		}
		return
	}
}

// continuesAfter opens a watch from version v, at which another watch ended. The new watch must
// continue without a gap, or it must have expired, because a server without history may not know
// the versions from before its start.
func continuesAfter(e *harness.Env, v listwatch.Version) {
	e.Helper()
	changed := e.Put("a", "on", "yes")
	got, err := e.Dial(harness.From(v)).ReceiveEvent()
	if !errors.Is(err, listwatch.Expired) && (err != nil || got.Version != changed) {
		e.Errorf("the compaction ended the watch at version %d; a watch from there: got %s, want version %d or an "+
			"error of code Expired", v, harness.Got(got, err), changed)
	}
}

// expiredDuringReplay writes more than the connections can buffer, so that some events are
// still unsent when the history is compacted. One watch is opened before the writes, and
// another one replays them.
func expiredDuringReplay(e *harness.Env) {
	start := e.Put("a")
	// The watches have different selectors, so that the server must track the position of
	// each.
	live := e.Dial(harness.From(start) + "&" + harness.LabelSelector("!nothing"))
	padding := strings.Repeat("x", 4<<10)
	const count = 400
	for range count {
		e.PutPadded("a", padding)
	}
	replaying := e.Dial(harness.From(start))
	for _, s := range []*harness.Watch{live, replaying} {
		if got := s.Want("MODIFIED a")[0].Version; got != start+1 {
			e.Fatalf("first event: got version %d, want %d", got, start+1)
		}
	}
	e.CompactHistory()
	for name, s := range map[string]*harness.Watch{"live": live, "replaying": replaying} {
		at := start + 1
		w, err := s.Receive()
		for ; err == nil && w.Type == "MODIFIED"; w, err = s.Receive() {
			ev, err := w.Event()
			if err != nil || ev.Version != at+1 {
				e.Fatalf("%s: got version %d after version %d, %v", name, ev.Version, at, err)
			}
			at++
		}
		if err != nil || !errors.Is(kubestatus.Parse(w.Object), listwatch.Expired) {
			e.Fatalf("%s: got %s %s, %v after version %d; want an ERROR event of code Expired", name,
				w.Type, w.Object, err, at)
		}
		s.WantEnd()
		if at == start+count {
			e.Errorf("%s: the watch received the whole history, so the compaction did not overtake it", name)
		}
	}
}
