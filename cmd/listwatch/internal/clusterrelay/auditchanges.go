package clusterrelay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/listwatch/listwatch"
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

// add counts the change of an object from the JSON before to the JSON after.
func (c *changesOf) add(before, after []byte) {
	var old, now map[string]any
	if json.Unmarshal(before, &old) != nil || json.Unmarshal(after, &now) != nil {
		return
	}
	c.Changes++
	c.Bytes += int64(len(after))
	metadata, _ := now["metadata"].(map[string]any)
	managed := sizeOf(metadata["managedFields"])
	c.ManagedFields += managed
	c.Metadata += sizeOf(metadata)
	equal := func(reduce func(map[string]any)) bool {
		reduce(old)
		reduce(now)
		return reflect.DeepEqual(old, now)
	}
	switch {
	case equal(dropBookkeeping):
		c.Nothing++
	case equal(func(o map[string]any) { dropHeartbeats(o) }):
		c.Heartbeats++
	case equal(func(o map[string]any) { delete(o, "status") }):
		c.Status++
	}
}

func sizeOf(v any) int64 {
	if v == nil {
		return 0
	}
	data, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return int64(len(data))
}

// dropBookkeeping removes what each write changes.
func dropBookkeeping(o map[string]any) {
	if metadata, ok := o["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
	}
}

// dropHeartbeats removes the times of heartbeats from v and from what it contains.
func dropHeartbeats(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range heartbeats {
			delete(v, name)
		}
		for _, member := range v {
			dropHeartbeats(member)
		}
	case []any:
		for _, element := range v {
			dropHeartbeats(element)
		}
	}
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
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.changes[name]
	if c == nil {
		c = &changesOf{Resource: name}
		a.changes[name] = c
	}
	c.add(before.Data, e.Object.Data)
	c.addFields(r.Fields, e.Object)
}
