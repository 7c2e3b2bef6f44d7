package history

import (
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
	"github.com/listwatch/listwatch/internal/digest"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// stateID returns the ID of the states of an epoch and of a selection that the texts identify. A
// reader who has a state of another selection, for example because an endpoint restricted its user
// to other objects, needs the whole state.
func stateID(epoch string, texts ...string) string { return epoch + "." + digest.Of(texts...) }

// knownSince returns s.since, or zero if the difference between the reader's state and the state at
// the given version is not known. l.mu must be held.
func (l *Log) knownSince(s *start, at listwatch.Version) listwatch.Version {
	newest := l.version() // the newest version that the reader may have seen, unless it has told
	if s.atVersion {
		newest = max(s.since, s.version)
	}
	if s.since > at || !l.state.departures.Knows(s.since, newest) {
		return 0
	}
	return s.since
}

// departed is the stage that returns the keys of the objects that the selection had after the
// version of the reader's state, and does not have in the snapshot. It returns no other key,
// because the reader may not be allowed to know it.
type departed struct {
	initial
	feed       *feed
	tree       tree
	at         listwatch.Version        // the version of the tree
	departures [][]departures.Departure // not read yet
	next       stage
	// matched caches the result of matches for selections that do not depend on the name.
	matched map[*departures.Attributes]bool
	// returned holds the keys that were returned.
	returned map[listwatch.Key]struct{}
}

func (d *departed) read(b batch) (batch, stage, error) {
	s := &d.feed.selection
	for ; !b.isFull() && b.visits > 0; b.visits-- {
		dep, ok := d.take()
		if !ok || dep.Version > d.at {
			return b, d.next, nil
		}
		if !d.matches(s, dep) {
			continue
		}
		key := listwatch.Key{Namespace: dep.From.Namespace(), Name: dep.Name}
		if now, _ := d.tree.Get(&listwatch.Object{Key: key}); !s.Matches(now) && d.isNew(key) {
			b.put(goneEvent(d.feed.log.description, key, dep.Version), frames.Ref{})
		}
	}
	return b, d, nil
}

// take removes and returns the next departure.
func (d *departed) take() (dep departures.Departure, ok bool) {
	for len(d.departures) > 0 && len(d.departures[0]) == 0 {
		d.departures = d.departures[1:]
	}
	if len(d.departures) == 0 {
		return dep, false
	}
	dep, d.departures[0] = d.departures[0][0], d.departures[0][1:]
	return dep, true
}

// matches reports whether s selected the object of dep before the write.
func (d *departed) matches(s *selection, dep departures.Departure) bool {
	if s.Name != "" && s.Name != dep.Name {
		return false
	}
	if s.Labels.Empty() && s.Fields.Empty() {
		return s.Namespace == "" || s.Namespace == dep.From.Namespace()
	}
	matched, ok := d.matched[dep.From]
	if !ok {
		matched = s.Matches(dep.From.Object(dep.Name))
		if !slices.Contains(s.Fields.Paths(), listwatch.FieldName) {
			d.cache(dep.From, matched)
		}
	}
	return matched
}

func (d *departed) cache(a *departures.Attributes, matched bool) {
	if d.matched == nil {
		d.matched = make(map[*departures.Attributes]bool)
	}
	d.matched[a] = matched
}

// isNew records that key is returned, and reports whether it was not returned before.
func (d *departed) isNew(key listwatch.Key) bool {
	before := len(d.returned)
	if d.returned == nil {
		d.returned = make(map[listwatch.Key]struct{})
	}
	d.returned[key] = struct{}{}
	return len(d.returned) > before
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
