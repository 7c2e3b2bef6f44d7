package clusterrelay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
)

// changesOf counts the changes of a resource since its cache was started, by their kind.
type changesOf struct {
	Resource string `json:"resource"`
	// Changes is the number of changes of existing objects, and Bytes the size of their events.
	Changes int   `json:"changes"`
	Bytes   int64 `json:"bytes"`
	// Nothing is the number of changes of nothing but managedFields, Heartbeats of nothing but
	// these and times of heartbeats, and Status of nothing but these and the status.
	Nothing    int `json:"managedFieldsOnly"`
	Heartbeats int `json:"heartbeatsOnly"`
	Status     int `json:"statusOnly"`
	// ManagedFields is the part of Bytes that a client saves with
	// drop=metadata.managedFields, and Metadata the part that remains for PartialObjectMetadata.
	ManagedFields int64 `json:"managedFieldsBytes"`
	Metadata      int64 `json:"metadataBytes"`
	// Selectors are the fields by which a watch could select objects. They are set in reports.
	Selectors []selectorOf `json:"selectors"`

	values map[string]map[string]bool // of the fields of the changed objects
}

// A selectorOf is a field with the number of its different values. A watch with a selector for one
// value receives, on average, that part of the changes.
type selectorOf struct {
	Field  string `json:"field"`
	Values int    `json:"values"`
}

// maxValues limits the number of the values of a field that are counted.
const maxValues = 10_000

// addFields counts the values of the named fields of a changed object.
func (c *changesOf) addFields(names []string, o *listwatch.Object) {
	if c.values == nil {
		c.values = make(map[string]map[string]bool)
	}
	for _, name := range names {
		if c.values[name] == nil {
			c.values[name] = make(map[string]bool)
		}
		if len(c.values[name]) < maxValues {
			c.values[name][o.Fields[name]] = true
		}
	}
}

// selectors returns the fields with several values, the most selective one first.
func (c *changesOf) selectors() []selectorOf {
	all := []selectorOf{}
	for field, values := range c.values {
		if len(values) > 1 {
			all = append(all, selectorOf{field, len(values)})
		}
	}
	slices.SortFunc(all, func(a, b selectorOf) int {
		return cmp.Or(cmp.Compare(b.Values, a.Values), cmp.Compare(a.Field, b.Field))
	})
	return all
}

// heartbeats are the members whose names say that something is still alive.
var heartbeats = []string{"lastHeartbeatTime", "lastProbeTime", "renewTime", "lastUpdateTime", "lastTransitionTime"}

// A changeKind says what a change has changed at most. Each kind includes those before it.
type changeKind uint8

const (
	ofBookkeeping changeKind = iota // nothing but the version and managedFields
	ofHeartbeats
	ofStatus
	ofAnything
)

// compare returns the kind of the change of an object from the JSON before to the JSON after.
func compare(before, after []byte) changeKind {
	kind := ofBookkeeping
	for _, m := range changed(before, after) {
		switch m.name {
		case "metadata":
			for _, m := range changed(m.before, m.after) {
				if m.name != "resourceVersion" && m.name != "managedFields" {
					kind = max(kind, m.kind())
				}
			}
		case "status":
			kind = max(kind, min(m.kind(), ofStatus))
		default:
			kind = max(kind, m.kind())
		}
	}
	return kind
}

// kind returns the kind of c as a part of an object: ofHeartbeats or ofAnything.
func (c change) kind() changeKind {
	if slices.Contains(heartbeats, c.name) {
		return ofHeartbeats
	}
	return compareValues(c.before, c.after)
}

// compareValues compares two values, of which one may be empty if it is missing. Equal values have
// the kind ofBookkeeping.
func compareValues(before, after []byte) changeKind {
	kind := ofBookkeeping
	switch {
	case bytes.Equal(before, after):
	case isA('{', before, after):
		for _, m := range changed(before, after) {
			kind = max(kind, m.kind())
		}
	case isA('[', before, after):
		old, now := elements(before), elements(after)
		if len(old) != len(now) {
			return ofAnything
		}
		for i := range old {
			kind = max(kind, compareValues(old[i], now[i]))
		}
	default:
		return ofAnything
	}
	return kind
}

// isA reports whether both values begin with the given character.
func isA(first byte, before, after []byte) bool {
	return len(before) > 0 && len(after) > 0 && before[0] == first && after[0] == first
}

func elements(array []byte) (all [][]byte) {
	_ = rawjson.Elements(array, func(value rawjson.Span) error { // array is valid
		all = append(all, value.Of(array))
		return nil
	})
	return all
}

// A change is a member before and after. A missing member has an empty value.
type change struct {
	name          string
	before, after []byte
}

// changed returns the members that differ between two objects, which may be missing.
func changed(before, after []byte) (all []change) {
	old, now := members(before), members(after)
	for len(old) > 0 && len(now) > 0 && bytes.Equal(old[0].name, now[0].name) { // the usual case
		if !bytes.Equal(old[0].value, now[0].value) {
			all = append(all, change{string(now[0].name), old[0].value, now[0].value})
		}
		old, now = old[1:], now[1:]
	}
	rest := make(map[string][]byte, len(old))
	for _, m := range old {
		rest[string(m.name)] = m.value
	}
	for _, m := range now {
		name := string(m.name)
		if value := rest[name]; !bytes.Equal(value, m.value) {
			all = append(all, change{name, value, m.value})
		}
		delete(rest, name)
	}
	for name, value := range rest {
		all = append(all, change{name, value, nil})
	}
	return all
}

// A member is a name and its value in an object.
type member struct{ name, value []byte }

func members(object []byte) (all []member) {
	if len(object) > 0 && object[0] == '{' {
		// The object is valid, so there is no error.
		_ = rawjson.MemberBytes(object, func(name []byte, value rawjson.Span) error {
			all = append(all, member{name, value.Of(object)})
			return nil
		})
	}
	return all
}

// add adds the counts of d to c.
func (c *changesOf) add(d changesOf) {
	c.Changes += d.Changes
	c.Bytes += d.Bytes
	c.Nothing += d.Nothing
	c.Heartbeats += d.Heartbeats
	c.Status += d.Status
	c.ManagedFields += d.ManagedFields
	c.Metadata += d.Metadata
}

// countChange returns the counts of one change of an object.
func countChange(before, after []byte) changesOf {
	c := changesOf{
		Changes: 1, Bytes: int64(len(after)), Metadata: int64(len(rawjson.Lookup(after, "metadata"))),
		ManagedFields: int64(len(rawjson.Lookup(after, "metadata", "managedFields"))),
	}
	switch compare(before, after) {
	case ofBookkeeping:
		c.Nothing = 1
	case ofHeartbeats:
		c.Heartbeats = 1
	case ofStatus:
		c.Status = 1
	}
	return c
}

// follow counts the changes in a cache until the cache is closed.
func (a *audit) follow(k *cache) {
	if <-k.settled; k.refusal != nil {
		return
	}
	for {
		w, err := k.Relay.Watch(context.Background(), listwatch.Query{Start: listwatch.StartAny})
		if err != nil {
			return // the relay is closed
		}
		objects := make(map[listwatch.Key]*listwatch.Object)
		for e, failure := range listwatch.All(context.Background(), w) {
			if err = failure; err != nil {
				break
			}
			a.observe(k.resource, objects, e)
		}
		_ = w.Close() // the watch has ended
		if !errors.Is(err, listwatch.Expired) {
			return
		}
	}
}

// observe counts e, an event of r, and records it in objects, the state before e.
func (a *audit) observe(r kubeapi.Resource, objects map[listwatch.Key]*listwatch.Object, e listwatch.Event) {
	if e.Object == nil || e.Type == listwatch.Bookmark || e.Type == listwatch.Synced {
		return
	}
	before := objects[e.Object.Key]
	if e.Type == listwatch.Deleted {
		delete(objects, e.Object.Key)
		return
	}
	objects[e.Object.Key] = e.Object
	if before == nil {
		return
	}
	name := fullName(r.Plural, r.Version, r.Group)
	counts := countChange(before.Data, e.Object.Data) // without the lock, which all streams take
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.changes[name]
	if c == nil {
		c = &changesOf{Resource: name}
		a.changes[name] = c
	}
	c.add(counts)
	c.addFields(r.Fields, e.Object)
}
