// Package meter measures the events and bytes that a watch receives without need. From the events
// of a watch of whole objects, it computes what the watch would have saved with a projection, a
// selector or conflation.
package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A Meter counts the events of a watch. The zero Meter is ready to use. The methods are safe for
// concurrent use.
type Meter struct {
	// EachMember adds a projection for each member of the first two levels. It omits only this
	// member. Each event is then reduced up to 50 times.
	EachMember bool
	// Fields are the fields, in addition to the namespace, by which the source can select objects.
	Fields []string
	// ToJSON returns the JSON of an object in the encoding of the watch. If nil, objects are JSON.
	// It is called for changes only, so the initial events count with their size in the encoding,
	// and without what a projection would save. A change whose object cannot be converted is not
	// counted.
	ToJSON func(data []byte) ([]byte, error)

	mu sync.Mutex
	// Guarded by mu.
	initial     Amount
	changes     Amount
	projections map[string]*projection // by their paths
	// selectors hold what watches with a selector would have received, by the parameter without the
	// value, and by the value.
	selectors map[string]map[string]*Amount
	paces     []*pace
	buf       []byte // reused by omitted
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

// A projection shows a part of the objects. The amounts are what a watch with it would have saved.
type projection struct {
	parameter        string
	shown            listwatch.Projection
	initial, changes Amount
}

const (
	// maxProjections limits the projections, because each event is reduced once for each of them.
	maxProjections = 50
	// maxValues limits the values of a selector that are counted.
	maxValues = 2000
)

// Measure reads w until it ends or ctx ends or, if d is positive, for d after the initial events.
// It returns nil at the end of ctx or d, and if the server has ended the watch with [io.EOF].
// Otherwise it returns the error of w. It keeps the objects of the watch until it returns. Another
// call continues with another watch, which sends its initial events.
func (m *Meter) Measure(ctx context.Context, w listwatch.Watcher, d time.Duration) error {
	end, cancel := context.WithCancel(ctx)
	defer cancel()
	m.begin()
	objects := make(map[listwatch.Key]*listwatch.Object)
	var batch [64]listwatch.Event
	for {
		n, err := w.Next(end, batch[:])
		for _, e := range batch[:n] {
			if m.add(objects, e, time.Now()); e.Type == listwatch.Synced && d > 0 {
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

// begin forgets the initial events of the last watch.
func (m *Meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.initial = Amount{}
	if m.projections == nil {
		m.projections, m.selectors = make(map[string]*projection), make(map[string]map[string]*Amount)
		m.paces = []*pace{{interval: time.Second}, {interval: 5 * time.Second}}
	}
	for _, p := range m.projections {
		p.initial = Amount{}
	}
}

// add adds an event that was received at the given time. objects are the objects before the event.
func (m *Meter) add(objects map[listwatch.Key]*listwatch.Object, e listwatch.Event, at time.Time) {
	if e.Type == listwatch.Synced || e.Type == listwatch.Bookmark {
		return
	}
	old := objects[e.Object.Key]
	if objects[e.Object.Key] = e.Object; e.Type == listwatch.Deleted {
		delete(objects, e.Object.Key)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ToJSON != nil {
		if e.Initial {
			m.initial.add(len(e.Object.Data))
			return
		}
		var errOld, err error
		old, errOld = m.inJSON(old)
		if e.Object, err = m.inJSON(e.Object); err != nil || errOld != nil {
			return
		}
	}
	m.addProjections(e.Object.Data)
	if e.Initial {
		m.initial.add(len(e.Object.Data))
		for _, p := range m.projections {
			p.initial.Bytes += m.omitted(p, e.Object)
		}
		return
	}
	m.changes.add(len(e.Object.Data))
	for _, p := range m.projections {
		if e.Type == listwatch.Modified && old != nil && p.shown.Hides(old, e.Object) {
			p.changes.add(len(e.Object.Data))
		} else {
			p.changes.Bytes += m.omitted(p, e.Object)
		}
	}
	m.addSelectors(e.Object)
	for _, p := range m.paces {
		p.add(e, at)
	}
}

// inJSON returns o, which may be nil, in JSON.
func (m *Meter) inJSON(o *listwatch.Object) (*listwatch.Object, error) {
	if o == nil {
		return nil, nil
	}
	converted := *o
	var err error
	converted.Data, err = m.ToJSON(o.Data)
	return &converted, err
}

// omitted returns the number of the bytes of o that p does not show.
func (m *Meter) omitted(p *projection, o *listwatch.Object) int {
	m.buf = p.shown.Append(m.buf[:0], o.Data)
	return len(o.Data) - len(m.buf)
}

// addSelectors adds o to what watches with a selector would have received.
func (m *Meter) addSelectors(o *listwatch.Object) {
	for name, value := range o.Labels {
		m.addSelector("labelSelector="+name, value, len(o.Data))
	}
	if o.Key.Namespace != "" {
		m.addSelector("fieldSelector="+listwatch.FieldNamespace, o.Key.Namespace, len(o.Data))
	}
	for _, name := range m.Fields {
		m.addSelector("fieldSelector="+name, o.Fields[name], len(o.Data))
	}
}

func (m *Meter) addSelector(parameter, value string, size int) {
	values := m.selectors[parameter]
	if values == nil {
		values = make(map[string]*Amount)
		m.selectors[parameter] = values
	}
	if values[value] == nil {
		if len(values) == maxValues {
			return
		}
		values[value] = new(Amount)
	}
	values[value].add(size)
}

// managed excludes the member that changes with each write to an object of Kubernetes. Because of
// this member, no other member ever changes alone.
const managed = "-['metadata']['managedFields']"

// common are the projections that are measured if an object has one of their members. Leases, nodes
// and conditions have times of heartbeats.
var common = []struct {
	paths   string
	members []string
}{
	{managed, []string{`"managedFields":`}},
	{
		"-spec.renewTime,-status.conditions.lastHeartbeatTime,-status.conditions.lastProbeTime," +
			"-status.conditions.lastTransitionTime,-status.conditions.lastUpdateTime",
		[]string{
			`"renewTime":`, `"lastHeartbeatTime":`, `"lastProbeTime":`, `"lastTransitionTime":`, `"lastUpdateTime":`,
		},
	},
	{"-['status']", []string{`"status":`}},
	{"metadata", []string{`"metadata":`}},
}

// addProjections adds the projections that reduce an object.
func (m *Meter) addProjections(object []byte) {
	isManaged := bytes.Contains(object, []byte(`"managedFields":`))
	for _, c := range common {
		hasMember := func(name string) bool { return bytes.Contains(object, []byte(name)) }
		if m.projections[c.paths] == nil && slices.ContainsFunc(c.members, hasMember) {
			m.addProjection(c.paths, isManaged)
		}
	}
	if !m.EachMember {
		return
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(object, &top) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(top)) {
		m.addProjection("-['"+name+"']", isManaged)
		var second map[string]json.RawMessage
		if json.Unmarshal(top[name], &second) != nil {
			continue
		}
		for _, n := range slices.Sorted(maps.Keys(second)) {
			m.addProjection("-['"+name+"']['"+n+"']", isManaged)
		}
	}
}

// addProjection adds the projection with the given paths, unless there are too many. It also omits
// managedFields if objects have them.
func (m *Meter) addProjection(paths string, isManaged bool) {
	if m.projections[paths] != nil || len(m.projections) == maxProjections {
		return
	}
	text := paths
	if isManaged && paths != managed {
		text += "," + managed
	}
	// A member that is always shown is an error, and so is a name with a quote.
	if p, err := listwatch.ParseProjection(text); err == nil {
		m.projections[paths] = &projection{parameter: "fields=" + p.String(), shown: p}
	}
}

// A pace computes what conflation with an interval would have saved.
type pace struct {
	interval time.Duration
	saved    Amount
	until    time.Time // the end of the pause
	waiting  bool      // some events are held back until then
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
