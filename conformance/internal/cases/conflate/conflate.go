package conflate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

const (
	// interval is the interval of the watches.
	interval = 200 * time.Millisecond
	conflate = "&conflate=200ms"
)

// dial opens a conflated watch from v.
func dial(e *harness.Env, v listwatch.Version, params string) *harness.Watch {
	e.Helper()
	w := e.Dial(harness.From(v) + params)
	if w.Header().Get(transport.ConflateHeader) == "" {
		e.Skipf("the server does not support conflate")
	}
	return w
}

func header(e *harness.Env) {
	if got := e.Dial("").Header().Get(transport.ConflateHeader); got != "" {
		e.Errorf("got %s %q without a request for it", transport.ConflateHeader, got)
	}
	got := e.Dial("conflate=1s").Header().Get(transport.ConflateHeader)
	if got == "" {
		e.Skipf("the server does not support conflate")
	}
	if got != "1s" {
		e.Errorf("got %s %q for conflate=1s", transport.ConflateHeader, got)
	}
	for _, value := range []string{"61s", "-1s", "soon"} {
		e.WatchRaw("conflate="+value).WantRefused(400, "BadRequest")
	}
}

func types(e *harness.Env) {
	start := e.Put("a")
	w := dial(e, start, conflate)
	var last listwatch.Version
	for range 3 {
		for range 5 {
			e.Put("a")
			e.Put("b")
		}
		e.Delete("b")
		e.Put("b")
		e.Put("c")
		e.Put("c")
		last = e.Delete("c")
		e.Pause(interval/2, interval/2)
	}
	got, err := w.ReadThrough(last)
	if err != nil {
		e.Fatal(err)
	}
	if err := e.CheckConflated(start, got); err != nil {
		e.Error(err)
	}
}

func lastState(e *harness.Env) {
	start := e.Put("a")
	e.Put("b")
	w := dial(e, start, conflate)
	const writes = 100
	var last listwatch.Version
	for range writes {
		last = e.Put("a")
	}
	got, err := w.ReadThrough(last)
	if err != nil {
		e.Fatalf("the last of %d states of an object: %v", writes, err)
	}
	if len(got) > writes/2 {
		e.Errorf("got %d events for %d states of an object within about an interval", len(got), writes)
	}
	if err := e.CheckConflated(start, got); err != nil {
		e.Error(err)
	}
}

// apply applies ev to objects, which maps the names of objects to their versions.
func apply(objects map[string]listwatch.Version, ev listwatch.Event) {
	name := strings.TrimPrefix(harness.EventLine(ev), ev.Type.String()+" ")
	switch ev.Type {
	case listwatch.Added, listwatch.Modified:
		objects[name] = ev.Version
	case listwatch.Deleted:
		delete(objects, name)
	}
}

func position(e *harness.Env) {
	start := e.Put("a")
	w := dial(e, start, conflate+"&allowWatchBookmarks=1&timeoutSeconds=1")
	// More events than a server is likely to send in one step.
	for n := range 3 * 100 {
		e.Put(fmt.Sprint(n % 100))
		e.Put("a")
	}
	objects, bookmarks := e.StateAt(start), 0
	for {
		ev, err := w.ReceiveEvent()
		if err != nil {
			break
		}
		if apply(objects, ev); ev.Type != listwatch.Bookmark {
			continue
		}
		bookmarks++
		if diff := cmp.Diff(e.StateAt(ev.Version), objects); diff != "" {
			e.Fatalf("the state at the bookmark of version %d (-want +got):\n%s", ev.Version, diff)
		}
	}
	if bookmarks == 0 {
		e.Errorf("the watch ended without a bookmark")
	}
}

func resumeInPass(e *harness.Env) {
	start := e.Put("a")
	for _, name := range []string{"b", "a", "b", "c", "a", "c", "b", "a"} {
		e.Put(name)
	}
	e.Delete("c")
	last := e.Put("b")
	all, want := readEvents(dial(e, start, conflate), last), e.StateAt(last)
	for n := range all[:len(all)-1] {
		for _, params := range []string{"", conflate} {
			objects := maps.Clone(e.StateAt(start))
			for _, ev := range slices.Concat(all[:n+1], readEvents(e.Dial(harness.From(all[n].Version)+params), last)) {
				apply(objects, ev)
			}
			if diff := cmp.Diff(want, objects); diff != "" {
				e.Errorf("resumed from version %d with %q (-want +got):\n%s", all[n].Version, params, diff)
			}
		}
	}
}

// readEvents reads w up to version last.
func readEvents(w *harness.Watch, last listwatch.Version) (all []listwatch.Event) {
	w.Helper()
	for len(all) == 0 || all[len(all)-1].Version < last {
		all = append(all, w.Next())
	}
	return all
}

func immediate(e *harness.Env) {
	start := e.Put("a")
	w := dial(e, start, "&conflate=5s")
	for range 3 {
		<-time.After(6 * time.Second)
		begin, v := time.Now(), e.Put("a")
		if got, waited := w.Next(), time.Since(begin); got.Version != v || waited > 0 {
			e.Errorf("got version %d after %v, want %d at once", got.Version, waited, v)
		}
	}
}
