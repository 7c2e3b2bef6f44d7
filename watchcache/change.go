package watchcache

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Change is one write of one object.
type Change struct {
	// Version is the version of the write. If zero, the version of Object is used.
	Version listwatch.Version
	// Key is the key of the object. If zero, the key of Object is used.
	Key listwatch.Key
	// Object is the object after the write. If nil, the write deleted the object.
	Object *listwatch.Object

	// Old is the object before the write, or nil if the write created it. Only the past that is
	// passed to Replace needs it. Apply ignores it and uses the object in the cache.
	Old *listwatch.Object
	// At is the time of the write, from which Options.History is measured. Only the past that is
	// passed to Replace needs it. If zero, the current time is used. Apply ignores At and always
	// uses the current time.
	At time.Time
}

// A write is a checked Change.
type write struct {
	key listwatch.Key
	history.Record
}

// check converts changes to writes. Their versions must be in order, and greater than reached.
func check(changes []Change, reached listwatch.Version, convert func(Change) (write, error)) ([]write, error) {
	writes := make([]write, len(changes))
	for i, change := range changes {
		w, err := convert(change)
		switch {
		case err != nil:
			return nil, err
		case i == 0 && w.Version <= reached:
			return nil, outOfOrder(w.Version, reached)
		case i > 0 && w.Version < writes[i-1].Version:
			return nil, outOfOrder(w.Version, writes[i-1].Version)
		}
		writes[i] = w
	}
	for _, group := range groups(writes) {
		slices.SortStableFunc(group, func(a, b write) int { return a.key.Compare(b.key) })
		for i := 1; i < len(group); i++ {
			if group[i].key == group[i-1].key {
				return nil, invalid("version %d changes object %v twice: a version has one change of an object",
					group[i].Version, group[i].key)
			}
		}
	}
	return writes, nil
}

// pastWrite converts a change from the past that was passed to Replace. Unlike write, it takes the
// old object and the time from the change.
func (c *Cache) pastWrite(change Change) (write, error) {
	w, err := c.write(change)
	if err != nil {
		return w, err
	}
	if w.At = change.At; w.At.IsZero() {
		w.At = time.Now()
	}
	switch old := change.Old; {
	case old == nil && w.New == nil:
		return w, invalid("the past deletes object %v at version %d: Old must be the object before the delete",
			w.key, w.Version)
	case old == nil:
		return w, nil
	case old.Key != w.key:
		return w, invalid("the change of %v at version %d has the old object %v: both must have the same key",
			w.key, w.Version, old.Key)
	default:
		w.Old = c.complete(old)
		return w, checkObject(old)
	}
}

// write returns change as a write without its old object.
func (c *Cache) write(change Change) (write, error) {
	o := change.Object
	if o == nil {
		switch {
		case change.Key == listwatch.Key{}:
			return write{}, invalid("a change has neither a Key nor an Object")
		case change.Version == 0:
			return write{}, errVersionZero("the delete of object " + change.Key.String())
		}
		return write{change.Key, history.Record{Version: change.Version}}, nil
	}
	if err := checkObject(o); err != nil {
		return write{}, err
	}
	v, key := cmp.Or(change.Version, o.Version), cmp.Or(change.Key, o.Key)
	if v != o.Version || key != o.Key {
		return write{}, invalid("the change of %v at version %d has object %v of version %d", key, v, o.Key, o.Version)
	}
	return write{key, history.Record{Version: v, New: c.complete(o)}}, nil
}

// checkObject returns an error if an object has no name or no version.
func checkObject(o *listwatch.Object) error {
	switch {
	case o.Key.Name == "":
		return invalid("an object has no name: %.100s", o.Data)
	case o.Version == 0:
		return errVersionZero("object " + o.Key.String())
	}
	return nil
}

// complete returns o with the values of the described fields, read from its data, and with kind and
// apiVersion unless the owner wants its bytes unchanged or they are not JSON.
func (c *Cache) complete(o *listwatch.Object) *listwatch.Object {
	data := o.Data
	if !c.options.Verbatim && c.description.Encoding == nil {
		data = rawjson.WithType(data, c.description.APIVersion, c.description.Kind)
	}
	fields := c.description.ReadFields(data)
	if len(data) == len(o.Data) && maps.Equal(fields, o.Fields) {
		return o // o can share its cached frames with the source that it comes from
	}
	return &listwatch.Object{Key: o.Key, Version: o.Version, Labels: o.Labels, Fields: fields, Data: data}
}

// groups splits writes by version.
func groups(writes []write) (all [][]write) {
	for len(writes) > 0 {
		n := slices.IndexFunc(writes, func(w write) bool { return w.Version != writes[0].Version })
		if n < 0 {
			n = len(writes)
		}
		all = append(all, writes[:n])
		writes = writes[n:]
	}
	return all
}

// records returns the records of a group, without deletes of objects that did not exist.
func records(group []write) []history.Record {
	records := make([]history.Record, 0, len(group))
	for _, w := range group {
		if w.Old != nil || w.New != nil {
			records = append(records, w.Record)
		}
	}
	return records
}
