package history

import (
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/digest"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// stateID returns the ID of the states of f: the epoch, and a hash of the selection. A reader who
// has a state of another selection, for example because an endpoint restricted its user to other
// objects, needs the whole state.
func (f *feed) stateID() string { return f.log.description.Epoch + "." + digest.Of(f.key) }

// knownSince returns s.since, or zero if the difference between the reader's state and the state at
// now is not known. l.mu must be held.
func (l *Log) knownSince(s *start, now listwatch.Version) listwatch.Version {
	newest := now // the newest version that the reader may have seen, unless it has said otherwise
	if s.atVersion {
		newest = max(s.since, s.version)
	}
	if max(s.since, newest) > now || !l.state.departures.knows(s.since, newest) {
		return 0
	}
	return s.since
}

// A goneReader reads the departures after the version of the reader's state.
type goneReader struct {
	departures [][]departure // not read yet
	// matched caches the result of matches for selections that do not depend on the name.
	matched map[*attributes]bool
	// returned holds the keys that were returned.
	returned map[listwatch.Key]struct{}
}

// next removes and returns the next departure.
func (g *goneReader) next() (d departure, ok bool) {
	for len(g.departures) > 0 && len(g.departures[0]) == 0 {
		g.departures = g.departures[1:]
	}
	if len(g.departures) == 0 {
		return d, false
	}
	d, g.departures[0] = g.departures[0][0], g.departures[0][1:]
	return d, true
}

// matches reports whether s selected the object of d before the write.
func (g *goneReader) matches(s *selection, d departure) bool {
	if s.Name != "" && s.Name != d.name {
		return false
	}
	if s.Labels.Empty() && s.Fields.Empty() {
		return s.Namespace == "" || s.Namespace == d.from.namespace()
	}
	matched, ok := g.matched[d.from]
	if !ok {
		matched = s.Matches(d.from.object(d.name))
		if !slices.Contains(s.Fields.Paths(), listwatch.FieldName) {
			g.cache(d.from, matched)
		}
	}
	return matched
}

func (g *goneReader) cache(a *attributes, matched bool) {
	if g.matched == nil {
		g.matched = make(map[*attributes]bool)
	}
	g.matched[a] = matched
}

// isNew records that key is returned, and reports whether it was not returned before.
func (g *goneReader) isNew(key listwatch.Key) bool {
	before := len(g.returned)
	if g.returned == nil {
		g.returned = make(map[listwatch.Key]struct{})
	}
	g.returned[key] = struct{}{}
	return len(g.returned) > before
}

// pollDepartures returns the keys of the objects that the selection had after the version of the
// reader's state, and does not have in the snapshot. It returns no other key, because the reader
// may not be allowed to know it.
func (c *Cursor) pollDepartures(dst batch) (n int) {
	s, r := &c.feed.selection, &c.start.snapshot
	for ; n < len(dst.events) && c.start.visits > 0; c.start.visits-- {
		d, ok := r.gone.next()
		if !ok {
			c.phase, c.start.snapshot = snapshotRead, snapshotReader{}
			break
		}
		if !r.gone.matches(s, d) {
			continue
		}
		key := listwatch.Key{Namespace: d.from.namespace(), Name: d.name}
		if now, _ := r.tree.Get(&listwatch.Object{Key: key}); !s.Matches(now) && r.gone.isNew(key) {
			dst.put(n, goneEvent(c.feed.log.description, key, d.version), frames.Ref{})
			n++
		}
	}
	return n
}

// goneEvent returns the Deleted event of an object of which only the key is known.
func goneEvent(d listwatch.Description, key listwatch.Key, v listwatch.Version) listwatch.Event {
	type metadata struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace,omitempty"`
		ResourceVersion string `json:"resourceVersion"`
	}
	data, err := listwatch.Encode(struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Metadata   metadata `json:"metadata"`
	}{d.Kind, d.APIVersion, metadata{key.Name, key.Namespace, v.String()}})
	if err != nil {
		panic("history: encode a key: " + err.Error())
	}
	return listwatch.Event{
		Type: listwatch.Deleted, Initial: true, Version: v, Object: &listwatch.Object{Key: key, Version: v, Data: data},
	}
}
