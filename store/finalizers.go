package store

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// Deleting an object with finalizers does not remove the object but marks it with
// metadata.deletionTimestamp. The object is removed when a writer removes its last
// finalizer (Kubernetes, "Finalizers"). No writer can remove the mark.

// deletionMarks are the members of the metadata that mark an object that is being deleted.
var deletionMarks = [...]string{"deletionTimestamp", "deletionGracePeriodSeconds"}

// finalizers returns metadata.finalizers.
func (p *parts) finalizers() ([]string, error) {
	m := findMember(p.metadata, "finalizers")
	if m == nil || isNull(m.Value) {
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

// hasFinalizer reports whether the object with the compact JSON data has a finalizer.
func hasFinalizer(data []byte) bool {
	switch string(rawjson.Lookup(data, "metadata", "finalizers")) {
	case "", "null", "[]":
		return false
	}
	return true
}

// isBeingDeleted reports whether the object is to be removed once it has no finalizer.
func (p *parts) isBeingDeleted() bool {
	m := findMember(p.metadata, "deletionTimestamp")
	return m != nil && !isNull(m.Value)
}

// keepDeletionMarks replaces the deletion marks of d with the marks of old, which may be nil.
func (p *parts) keepDeletionMarks(old *parts) {
	for _, name := range deletionMarks {
		var m *rawjson.Member
		if old != nil {
			m = findMember(old.metadata, name)
		}
		if m != nil {
			p.setMetadata(name, m.Value)
			continue
		}
		p.dropMetadata(name)
	}
}

// checkDeletionMarks returns an error if sub sets a deletion mark, which only a delete may do. If
// old has a deletionTimestamp, the deletionTimestamp of sub is ignored, as in Kubernetes.
func (s CollectionSpec) checkDeletionMarks(sub *submission, old *parts) error {
	for _, name := range deletionMarks {
		m, before := findMember(sub.doc.metadata, name), findMember(old.metadata, name)
		if m == nil || isNull(m.Value) ||
			before != nil && (name == "deletionTimestamp" || bytes.Equal(m.Value, before.Value)) {
			continue
		}
		return s.invalid(sub.key.Name, []listwatch.Cause{{
			Reason: listwatch.CauseInvalid, Field: "metadata." + name,
			Message: fmt.Sprintf("Invalid value: %s: field is immutable", m.Value),
		}})
	}
	return nil
}

// checkFinalizers returns an error if sub adds finalizers to an object that is being deleted.
func (s CollectionSpec) checkFinalizers(sub *submission, old *parts) error {
	if !old.isBeingDeleted() {
		return nil
	}
	before, err := old.finalizers()
	if err != nil {
		return nil // another program wrote old with invalid finalizers, so allow every valid update
	}
	added := slices.DeleteFunc(slices.Sorted(slices.Values(sub.finalizers)), func(name string) bool {
		return slices.Contains(before, name)
	})
	if len(added) == 0 {
		return nil
	}
	return s.invalid(sub.key.Name, []listwatch.Cause{{
		Reason: listwatch.CauseForbidden, Field: "metadata.finalizers",
		Message: fmt.Sprintf("Forbidden: no new finalizers can be added if the object is being deleted, "+
			"found new finalizers %#v", slices.Compact(added)),
	}})
}

// draftMarked returns data, which would replace old, with deletion marks. It returns nil if data is
// old and already marked, or if data has no finalizers. hasFinalizers distinguishes these cases.
func (s CollectionSpec) draftMarked(
	old *listwatch.Object, data []byte, now time.Time,
) (marked *Draft, hasFinalizers bool) {
	if !hasFinalizer(data) {
		return nil, false
	}
	d, err := splitDocument(data)
	if err != nil {
		// Another program wrote the object, and it cannot be marked, so the delete removes it.
		return nil, false
	}
	doc := d.changeable()
	isMarked := doc.isBeingDeleted()
	if isMarked && bytes.Equal(data, old.Data) {
		return nil, true
	}
	doc.setMetadata("resourceVersion", nil)
	if !isMarked {
		if n := generationOf(&doc); n > 0 {
			doc.setMetadata("generation", strconv.AppendInt(nil, n+1, 10))
		}
		doc.setMetadata("deletionTimestamp", quoteTime(now))
		doc.setMetadata("deletionGracePeriodSeconds", []byte("0"))
	}
	return s.draft(&submission{doc: doc, key: old.Key, labels: old.Labels}), true
}
