package readcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/listwatch/listwatch"
)

// A waste computes, from the events of a watch of whole objects, what the watch would have received
// with a projection, a selector or conflation.
type waste struct {
	objects map[listwatch.Key]*listwatch.Object
	initial amount
	changes amount
	members map[string]*member // by path
	labels  map[string]*amount // what watches with a selector would have received
	paces   []*pace
}

// An amount is a number of events and of the bytes of their objects, as JSON without compression.
type amount struct{ events, bytes int }

func (a *amount) add(bytes int) {
	a.events++
	a.bytes += bytes
}

// A member is a member of the objects, at the first or second level. The amounts are what a watch
// without it would have saved. If objects have managedFields, the watch is also without these: they
// change with each write, so no other member changes alone.
type member struct {
	parameter        string
	without          listwatch.Projection
	initial, changes amount
}

// maxMembers limits the members, because each event is reduced once for each of them.
const maxMembers = 48

func newWaste() *waste {
	return &waste{
		objects: map[listwatch.Key]*listwatch.Object{}, members: map[string]*member{}, labels: map[string]*amount{},
		paces: []*pace{{interval: time.Second}, {interval: 5 * time.Second}},
	}
}

// measure reads watcher until ctx ends, or for d after the initial events.
func (w *waste) measure(ctx context.Context, watcher listwatch.Watcher, d time.Duration) error {
	end, cancel := context.WithCancel(ctx)
	defer cancel()
	var batch [64]listwatch.Event
	for {
		n, err := watcher.Next(end, batch[:])
		for _, e := range batch[:n] {
			if w.add(e, time.Now()); e.Type == listwatch.Synced {
				defer time.AfterFunc(d, cancel).Stop()
			}
		}
		switch {
		case end.Err() != nil || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// add adds an event that was received at the given time.
func (w *waste) add(e listwatch.Event, at time.Time) {
	if e.Type == listwatch.Synced || e.Type == listwatch.Bookmark {
		return
	}
	size, old := len(e.Object.Data), w.objects[e.Object.Key]
	if w.objects[e.Object.Key] = e.Object; e.Type == listwatch.Deleted {
		delete(w.objects, e.Object.Key)
	}
	w.addMembers(e.Object.Data)
	total := &w.changes
	if e.Initial {
		total = &w.initial
	}
	total.add(size)
	for _, m := range w.members {
		saved := &m.changes
		if e.Initial {
			saved = &m.initial
		}
		if e.Type == listwatch.Modified && old != nil && m.without.Hides(old, e.Object) {
			saved.add(size)
			continue
		}
		saved.bytes += size - len(m.without.Append(nil, e.Object.Data))
	}
	if e.Initial {
		return
	}
	for _, selector := range selectorsOf(e.Object) {
		if w.labels[selector] == nil {
			w.labels[selector] = new(amount)
		}
		w.labels[selector].add(size)
	}
	for _, p := range w.paces {
		p.add(e, at)
	}
}

// selectorsOf returns the parameters that select o by one of its labels or by its namespace.
func selectorsOf(o *listwatch.Object) (all []string) {
	for k, v := range o.Labels {
		all = append(all, "labelSelector="+k+"="+v)
	}
	if o.Key.Namespace != "" {
		all = append(all, "fieldSelector=metadata.namespace="+o.Key.Namespace)
	}
	return all
}

// plainName matches the names that a path contains without quotes.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_$/-]+$`)

// addMembers adds the members of an object that may be left out.
func (w *waste) addMembers(object []byte) {
	var top map[string]json.RawMessage
	if json.Unmarshal(object, &top) != nil {
		return
	}
	managed := bytes.Contains(top["metadata"], []byte(`"managedFields":`))
	for _, name := range slices.Sorted(maps.Keys(top)) {
		w.addMember(name, managed && name != "metadata")
		var second map[string]json.RawMessage
		if json.Unmarshal(top[name], &second) != nil {
			continue
		}
		for _, n := range slices.Sorted(maps.Keys(second)) {
			path := "." + n
			if !plainName.MatchString(n) {
				path = "['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(n) + "']"
			}
			w.addMember(name+path, managed && name+path != managedFields)
		}
	}
}

const managedFields = "metadata.managedFields"

// addMember adds the member at path, unless there are too many. managed adds managedFields to it.
func (w *waste) addMember(path string, managed bool) {
	if w.members[path] != nil || len(w.members) == maxMembers {
		return
	}
	// A member that is always shown is an error.
	text := "-" + path
	if managed {
		text = "-" + managedFields + "," + text
	}
	if p, err := listwatch.ParseProjection(text); err == nil {
		w.members[path] = &member{parameter: "fields=" + text, without: p}
	}
}

// A pace computes what conflation with an interval would have saved.
type pace struct {
	interval time.Duration
	saved    amount
	until    time.Time // the end of the pause
	waiting  bool      // there are events that were not sent before until
	// modified holds the bytes of the waiting MODIFIED events without a later event.
	modified map[listwatch.Key]int
}

func (p *pace) add(e listwatch.Event, at time.Time) {
	for !at.Before(p.until) {
		p.modified = map[listwatch.Key]int{}
		if !p.waiting { // after a silence, e is sent at once
			p.until = at.Add(p.interval)
			return
		}
		p.until, p.waiting = p.until.Add(p.interval), false
	}
	p.waiting = true
	if size, ok := p.modified[e.Object.Key]; ok {
		p.saved.add(size)
	}
	if delete(p.modified, e.Object.Key); e.Type == listwatch.Modified {
		p.modified[e.Object.Key] = len(e.Object.Data)
	}
}

// print writes what the watch received, and what it would have saved.
func (w *waste) print(out io.Writer) error {
	fmt.Fprintf(out, "initial events: %d, %s; changes: %d, %s (JSON without compression)\n",
		w.initial.events, size(w.initial.bytes), w.changes.events, size(w.changes.bytes))
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nSAVES EVENTS\tBYTES\tINITIAL BYTES\tPARAMETER\n")
	row := func(initial, changes amount, parameter string) {
		events, volume := share(changes.events, w.changes.events), share(changes.bytes, w.changes.bytes)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", events, volume, share(initial.bytes, w.initial.bytes), parameter)
	}
	paths := slices.SortedFunc(maps.Keys(w.members), func(a, b string) int {
		x, y := w.members[a], w.members[b]
		return cmp.Or(y.changes.bytes+y.initial.bytes-x.changes.bytes-x.initial.bytes, strings.Compare(a, b))
	})
	for _, path := range paths[:min(len(paths), 15)] {
		row(w.members[path].initial, w.members[path].changes, w.members[path].parameter)
	}
	for _, p := range w.paces {
		row(amount{}, p.saved, "conflate="+listwatch.FormatConflation(p.interval))
	}
	selectors := slices.SortedFunc(maps.Keys(w.labels), func(a, b string) int {
		return cmp.Or(w.labels[b].events-w.labels[a].events, strings.Compare(a, b))
	})
	selectors = slices.DeleteFunc(selectors, func(s string) bool { return w.labels[s].events == w.changes.events })
	for _, s := range selectors[:min(len(selectors), 5)] {
		got := *w.labels[s]
		row(amount{}, amount{w.changes.events - got.events, w.changes.bytes - got.bytes}, s)
	}
	fmt.Fprint(t, "\nUse a parameter if you do not need what it leaves out. Several paths go into one\n"+
		"parameter, as in fields=-metadata.managedFields,-status.images.\n")
	return t.Flush()
}

func share(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func size(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
