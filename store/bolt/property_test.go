package bolt_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"pgregory.net/rapid"
)

// A model is the expected content of a database: its state, and every event since it was
// created.
type model struct {
	start   listwatch.Version
	last    listwatch.Version
	events  []event
	objects map[string]string // the newest objects as lines, by name
}

type event struct {
	version listwatch.Version
	line    string
}

func (m *model) add(kind listwatch.EventType, o *listwatch.Object) {
	m.last = o.Version
	m.events = append(m.events, event{o.Version, line(kind, o)})
	if delete(m.objects, o.Key.Name); kind != listwatch.Deleted {
		m.objects[o.Key.Name] = line(listwatch.Added, o)
	}
}

func (m *model) after(v listwatch.Version) (lines []string) {
	for _, e := range m.events {
		if e.version > v {
			lines = append(lines, e.line)
		}
	}
	return lines
}

func (m *model) list() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(m.objects)) {
		lines = append(lines, m.objects[name])
	}
	return append(lines, "at "+m.last.String())
}

// A walk applies random operations to a database and to its model.
type walk struct {
	*testDB
	t *rapid.T
	model
}

// Property: state and history match the writes, and versions always increase, whatever is
// written, and however often the database is closed, killed, shrunk or compacted.
func TestRandomOperationsMatchTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, bolt.Options{
			History: listwatch.Retention{
				Age:   -1,
				Bytes: rapid.SampledFrom([]int64{0, 1, 4 << 10}).Draw(rt, "bytes"),
			},
			Transformer:     rapid.SampledFrom([]store.Transformer{nil, reverser{}}).Draw(rt, "transformer"),
			ShrinkThreshold: rapid.SampledFrom([]int64{-1, 1}).Draw(rt, "shrink"),
		})
		w := &walk{
			testDB: s, t: rt,
			model: model{start: s.db.Version(), last: s.db.Version(), objects: map[string]string{}},
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":      func(rt *rapid.T) { w.t = rt; w.check() },
			"write": func(rt *rapid.T) { w.t = rt; w.write() },
			"writes": func(rt *rapid.T) {
				w.t = rt
				for range rapid.IntRange(1, 8).Draw(rt, "writes") {
					w.write()
				}
			},
			"restart": func(*rapid.T) { w.reopen() },
			"kill":    func(*rapid.T) { w.kill() },
			"shrink":  func(rt *rapid.T) { w.must(w.db.Shrink()) },
			"compact": func(*rapid.T) { w.db.Compact() },
		})
		w.close()
	})
}

func (w *walk) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *walk) write() {
	bolt.DisableSync(w.db)
	name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(w.t, "name")
	_, exists := w.objects[name]
	switch {
	case !exists:
		o, err := w.pods.Create(w.Context(), pod(name, rapid.IntRange(0, 9).Draw(w.t, "i")))
		w.must(err)
		w.add(listwatch.Added, o)
	case rapid.IntRange(0, 2).Draw(w.t, "delete") == 0:
		o, err := w.pods.Delete(w.Context(), podKey(name), listwatch.Preconditions{})
		w.must(err)
		w.add(listwatch.Deleted, o)
	default:
		o, err := w.pods.Replace(w.Context(), podKey(name), pod(name, rapid.IntRange(0, 99).Draw(w.t, "i")))
		w.must(err)
		if o.Version > w.last {
			w.add(listwatch.Modified, o)
		}
	}
}

// kill copies the open file and continues with the copy, as if the process had been killed.
func (w *walk) kill() {
	path := writeFile(w, readFile(w, w.path))
	w.close()
	w.path = path
	w.open()
}

func (w *walk) check() {
	if diff := cmp.Diff(w.model.list(), w.testDB.list(listwatch.Query{})); diff != "" {
		w.t.Fatalf("list (-want +got):\n%s", diff)
	}
	if w.db.Version() != w.last {
		w.t.Fatalf("the database is at version %d, want %d", w.db.Version(), w.last)
	}
	// A watch from an earlier version either returns all events after it, or is Expired.
	from := []listwatch.Version{w.start}
	for _, e := range w.events {
		from = append(from, e.version)
	}
	resumable := false
	for _, v := range from {
		watcher, err := w.pods.Watch(w.Context(), listwatch.Query{Start: listwatch.StartAt, Version: v})
		if err != nil {
			if resumable || listwatch.CodeOf(err) != listwatch.Expired {
				w.t.Fatalf("a watch from %d: %v, want Expired; a watch from an earlier version works: %t",
					v, err, resumable)
			}
			continue
		}
		w.must(watcher.Close())
		resumable = true
		got := strings.Join(w.testDB.eventsAfter(v, listwatch.Query{}), "\n")
		if diff := cmp.Diff(strings.Join(w.model.after(v), "\n"), got); diff != "" {
			w.t.Fatalf("after %d (-want +got):\n%s", v, diff)
		}
	}
	if !resumable {
		w.t.Fatal(fmt.Sprintf("no watch from %d, the newest version", w.last))
	}
}
