package store

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// An object with finalizers is not deleted but marked, with metadata.deletionTimestamp, and goes when a writer takes the last finalizer
// away (Kubernetes, "Finalizers"). Nobody can take the mark away again.

// marks are the members of the metadata that say that an object is to go.
var marks = [...]string{"deletionTimestamp", "deletionGracePeriodSeconds"}

// finalizers returns metadata.finalizers.
func (d *document) finalizers() ([]string, error) {
	m := find(d.meta, "finalizers")
	if m == nil || string(m.Value) == "null" {
		return nil, nil
	}
	var all []string
	err := rawjson.Elements(m.Value, func(value rawjson.Span) error {
		name, err := rawjson.String(value.Of(m.Value))
		all = append(all, name)
		return err
	})
	if err != nil {
		return nil, badRequest("metadata.finalizers: %v", err)
	}
	return all, nil
}

// marked reports whether the object is to go as soon as nothing holds it.
func (d *document) marked() bool {
	m := find(d.meta, "deletionTimestamp")
	return m != nil && string(m.Value) != "null"
}

// keepMarks gives d the marks of old, whatever its writer said; old may be nil.
func (d *document) keepMarks(old *document) {
	for _, name := range marks {
		var m *rawjson.Member
		if old != nil {
			m = find(old.meta, name)
		}
		if m != nil {
			d.setMeta(name, m.Value)
			continue
		}
		d.meta = slices.DeleteFunc(d.meta, func(m rawjson.Member) bool { return m.Name == name })
	}
}

// checkFinalizers refuses finalizers that are new on an object that is to go.
func (r CollectionSpec) checkFinalizers(d *draft, old *document) error {
	if !old.marked() {
		return nil
	}
	before, err := old.finalizers()
	if err != nil {
		return nil // a foreign writer's: what it is replaced by is not worse
	}
	for _, name := range d.finalizers {
		if slices.Contains(before, name) {
			continue
		}
		return r.invalid(d.key.Name, []listwatch.Cause{{
			Reason: listwatch.CauseForbidden, Field: "metadata.finalizers",
			Message: fmt.Sprintf("Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{%q}", name),
		}})
	}
	return nil
}

// mark returns what a delete makes of an object that finalizers hold: nil where it bears the mark already. held is false where
// nothing holds it.
func (r CollectionSpec) mark(old *listwatch.Object, now time.Time) (marked *Draft, held bool) {
	switch string(rawjson.Lookup(old.Data, "metadata", "finalizers")) {
	case "", "null", "[]":
		return nil, false
	}
	doc, err := splitDocument(old.Data)
	if err != nil {
		return nil, false // a foreign writer's, and nothing else can be done with it
	}
	if doc.marked() {
		return nil, true
	}
	doc.setMeta("resourceVersion", nil)
	if n := generationOf(doc); n > 0 {
		doc.setMeta("generation", strconv.AppendInt(nil, n+1, 10))
	}
	doc.setMeta("deletionTimestamp", quote(now.UTC().Format(time.RFC3339)))
	doc.setMeta("deletionGracePeriodSeconds", []byte("0"))
	return r.seal(&draft{doc: doc, key: old.Key, labels: old.Labels}), true
}
