// Package waste computes, from the events of a watch of whole objects, what the watch would have
// saved with a projection, a selector or conflation.
package waste

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

// A Meter counts the events of one watch. It keeps the objects of the watch.
type Meter struct {
	objects map[listwatch.Key]*listwatch.Object
	initial Amount
	changes Amount
	members map[string]*member // by path
	labels  map[string]*Amount // what watches with a selector would have received
	paces   []*pace
}

// An Amount is a number of events and of the bytes of their objects, as JSON without compression.
type Amount struct {
	Events int `json:"events"`
	Bytes  int `json:"bytes"`
}

func (a *Amount) add(bytes int) {
	a.Events++
	a.Bytes += bytes
}

// A member is a member of the objects, at the first or second level. The amounts are what a watch
// without it would have saved. If objects have managedFields, the watch is also without these: they
// change with each write, so no other member changes alone.
type member struct {
	parameter        string
	without          listwatch.Projection
	initial, changes Amount
}

// maxMembers limits the members, because each event is reduced once for each of them.
const maxMembers = 48

// New returns a Meter that has counted nothing.
func New() *Meter {
	return &Meter{
		objects: map[listwatch.Key]*listwatch.Object{}, members: map[string]*member{}, labels: map[string]*Amount{},
		paces: []*pace{{interval: time.Second}, {interval: 5 * time.Second}},
	}
}

// Measure reads watcher until ctx ends, or for d after the initial events.
func (m *Meter) Measure(ctx context.Context, watcher listwatch.Watcher, d time.Duration) error {
	end, cancel := context.WithCancel(ctx)
	defer cancel()
	var batch [64]listwatch.Event
	for {
		n, err := watcher.Next(end, batch[:])
		for _, e := range batch[:n] {
			if m.add(e, time.Now()); e.Type == listwatch.Synced {
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
func (m *Meter) add(e listwatch.Event, at time.Time) {
	if e.Type == listwatch.Synced || e.Type == listwatch.Bookmark {
		return
	}
	size, old := len(e.Object.Data), m.objects[e.Object.Key]
	if m.objects[e.Object.Key] = e.Object; e.Type == listwatch.Deleted {
		delete(m.objects, e.Object.Key)
	}
	m.addMembers(e.Object.Data)
	total := &m.changes
	if e.Initial {
		total = &m.initial
	}
	total.add(size)
	for _, omitted := range m.members {
		saved := &omitted.changes
		if e.Initial {
			saved = &omitted.initial
		}
		if e.Type == listwatch.Modified && old != nil && omitted.without.Hides(old, e.Object) {
			saved.add(size)
			continue
		}
		saved.Bytes += size - len(omitted.without.Append(nil, e.Object.Data))
	}
	if e.Initial {
		return
	}
	for _, selector := range selectorsOf(e.Object) {
		if m.labels[selector] == nil {
			m.labels[selector] = new(Amount)
		}
		m.labels[selector].add(size)
	}
	for _, p := range m.paces {
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

// addMembers adds the members of an object that may be left out.
func (m *Meter) addMembers(object []byte) {
	var top map[string]json.RawMessage
	if json.Unmarshal(object, &top) != nil {
		return
	}
	managed := ""
	if bytes.Contains(top["metadata"], []byte(`"managedFields":`)) {
		managed = ",-metadata.managedFields"
	}
	for _, name := range slices.Sorted(maps.Keys(top)) {
		m.addMember("['"+name+"']", managed)
		var second map[string]json.RawMessage
		if json.Unmarshal(top[name], &second) != nil {
			continue
		}
		for _, n := range slices.Sorted(maps.Keys(second)) {
			m.addMember("['"+name+"']['"+n+"']", managed)
		}
	}
}

// addMember adds the member at path, unless there are too many. The watch is also without managed.
func (m *Meter) addMember(path, managed string) {
	if m.members[path] != nil || len(m.members) == maxMembers {
		return
	}
	// A member that is always shown is an error, and so is a name with a quote.
	if p, err := listwatch.ParseProjection("-" + path + managed); err == nil {
		m.members[path] = &member{parameter: "fields=" + p.String(), without: p}
	}
}

// A pace computes what conflation with an interval would have saved.
type pace struct {
	interval time.Duration
	saved    Amount
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
