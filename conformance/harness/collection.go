package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
)

// Collection is a collection under test, with a record of what the case wrote to it.
type Collection struct {
	Objects Store
	usage   *usage

	Mu sync.Mutex
	// Guarded by Mu.
	counter int
	History []Write
}

// A Write is one change of an object. Labels is nil if the object was deleted.
type Write struct {
	Version listwatch.Version
	Name    string
	Labels  map[string]string
}

// Put creates or changes an object and returns the version of the write. The name may have
// the form namespace/name. labels are pairs of keys and values. Put also copies the label
// "phase" to the field spec.phase.
func (e *Env) Put(name string, labels ...string) listwatch.Version {
	e.Helper()
	v, err := e.TryPut(name, labels...)
	if err != nil {
		e.Fatalf("put %s: %v", name, err)
	}
	e.Timeline.notef("put %s %v: version %d", name, labels, v)
	return v
}

// TryPut is like Put but returns the error, so that any goroutine may call it.
func (c *Collection) TryPut(name string, labels ...string) (listwatch.Version, error) {
	set := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		set[labels[i]] = labels[i+1]
	}
	return c.TryPutSpec(name, set, map[string]any{"phase": set["phase"]})
}

// TryPutSpec is like TryPut but takes the spec of the object. It adds a counter to the spec, so
// that every write changes the object.
func (c *Collection) TryPutSpec(name string, labels map[string]string, spec map[string]any) (listwatch.Version, error) {
	c.Use(Writes)
	spec["n"] = c.nextCount()
	key := KeyOf(name)
	m := listwatch.Metadata{Name: key.Name, Namespace: key.Namespace, Labels: labels}
	body, err := json.Marshal(map[string]any{"metadata": m, "spec": spec})
	if err != nil {
		return 0, err
	}
	v, err := c.Objects.Put(context.Background(), key, body)
	if err != nil {
		return 0, err
	}
	return c.Record(Write{v, name, labels}), nil
}

// nextCount returns a number that differs in each call, so that every write changes its object.
func (c *Collection) nextCount() int {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.counter++
	return c.counter
}

// Delete deletes an object and returns the version of the deletion.
func (e *Env) Delete(name string) listwatch.Version {
	e.Helper()
	v, err := e.TryDelete(name)
	if err != nil {
		e.Fatalf("delete %s: %v", name, err)
	}
	e.Timeline.notef("delete %s: version %d", name, v)
	return v
}

// TryDelete is like Delete but returns the error, so that any goroutine may call it.
func (c *Collection) TryDelete(name string) (listwatch.Version, error) {
	c.Use(Writes)
	v, err := c.Objects.Delete(context.Background(), KeyOf(name))
	if err != nil {
		return 0, err
	}
	return c.Record(Write{v, name, nil}), nil
}

// Record adds a write to the history and returns its version.
func (c *Collection) Record(w Write) listwatch.Version {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.History = append(c.History, w)
	return w.Version
}

// Newest returns the version of the last write.
func (c *Collection) Newest() listwatch.Version {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if len(c.History) == 0 {
		return 0
	}
	return c.History[len(c.History)-1].Version
}

// KeyOf returns the key for a name or namespace/name. If the namespace is missing,
// DefaultNamespace is used.
func KeyOf(name string) listwatch.Key {
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		return listwatch.Key{Namespace: namespace, Name: name}
	}
	return listwatch.Key{Namespace: DefaultNamespace, Name: name}
}

// PutSentinel writes an object with a new name and returns the name. A watch that receives this
// object has received all earlier events.
func (e *Env) PutSentinel(labels ...string) string {
	e.Helper()
	e.Mu.Lock()
	name := fmt.Sprintf("sentinel-%d", e.counter)
	e.Mu.Unlock()
	e.Put(name, labels...)
	return name
}

// PutJSON is like Put with a JSON spec that is stored unchanged.
func (e *Env) PutJSON(name, spec string) listwatch.Version {
	e.Helper()
	v, err := e.TryPutJSON(name, spec)
	if err != nil {
		e.Fatalf("put %s: %v", name, err)
	}
	return v
}

// TryPutJSON is like PutJSON but returns the error, so that any goroutine may call it.
func (e *Env) TryPutJSON(name, spec string) (listwatch.Version, error) {
	e.Use(Writes)
	key := KeyOf(name)
	body := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q},"spec":%s}`, key.Name, key.Namespace, spec)
	v, err := e.Objects.Put(context.Background(), key, []byte(body))
	if err != nil {
		return 0, err
	}
	return e.Record(Write{v, name, map[string]string{}}), nil
}

// NextWriteAfter returns the version of the first write after v, or 0 if there is none. It requires
// that the writes were made one after another.
func (c *Collection) NextWriteAfter(v listwatch.Version) listwatch.Version {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	i := sort.Search(len(c.History), func(i int) bool { return c.History[i].Version > v })
	if i == len(c.History) {
		return 0
	}
	return c.History[i].Version
}
