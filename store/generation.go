package store

import (
	"slices"
	"strconv"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A GenerationRule selects the changes that raise metadata.generation, which is 1 in a new object.
// The zero GenerationRule selects changes of anything except metadata and status. Kubernetes has
// other rules for some kinds.
type GenerationRule struct {
	// None leaves metadata.generation out.
	None bool
	// Fixed keeps the generation at 1.
	Fixed bool
	// OnlyUpdates leaves metadata.generation out of a new object. The first selected change sets it
	// to 1.
	OnlyUpdates bool
	// Status also selects changes of the status.
	Status bool
	// Metadata names members of the metadata whose changes are selected, too, such as annotations.
	Metadata []string
}

// setGeneration sets metadata.generation. old is nil in a create.
func (r GenerationRule) setGeneration(doc, old *parts, contentChanged bool) {
	generation := int64(1)
	switch {
	case old != nil:
		generation = generationOf(old)
		if r.raises(doc, old, contentChanged) {
			generation++
		}
	case r.OnlyUpdates:
		generation = 0
	}
	switch {
	case r.None, r.OnlyUpdates && generation == 0:
		doc.dropMetadata("generation")
	default:
		doc.setMetadata("generation", strconv.AppendInt(nil, generation, 10))
	}
}

// raises reports whether the change from old to doc raises the generation. contentChanged is true
// if anything except metadata and status has changed.
func (r GenerationRule) raises(doc, old *parts, contentChanged bool) bool {
	switch {
	case r.Fixed:
		return false
	case contentChanged:
		return true
	case r.Status && !equalMember(doc.members, old.members, "status"):
		return true
	}
	return slices.ContainsFunc(r.Metadata, func(name string) bool {
		return !equalMember(doc.metadata, old.metadata, name)
	})
}

// equalMember reports whether a and b have equal members with the given name, or none.
func equalMember(a, b []rawjson.Member, name string) bool {
	memberA, memberB := findMember(a, name), findMember(b, name)
	if memberA == nil || memberB == nil {
		return memberA == memberB
	}
	return rawjson.Equal(memberA.Value, memberB.Value)
}

// generationOf returns metadata.generation, or 0 if it is absent or not an integer.
func generationOf(d *parts) int64 {
	m := findMember(d.metadata, "generation")
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(m.Value), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
