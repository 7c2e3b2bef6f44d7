package listwatch

import "github.com/listwatch/listwatch/internal/rawjson"

// A Projection selects members of objects. A list or a watch with a projection shows each object
// reduced to these members. The members apiVersion, kind, and name, namespace, uid and
// resourceVersion of metadata are always shown. A reduced object is for reading only: a client that
// writes it back deletes all other members.
//
// A projection is part of the selection: a change that leaves the reduced object as it was, apart
// from its resourceVersion, sends no event. Therefore a reduced object may have an older
// resourceVersion than the whole object, and a conditional write that uses it may fail with
// [Conflict].
//
// The zero Projection shows whole objects. A projection is immutable.
type Projection struct{ mask *rawjson.Mask }

// ParseProjection parses a list of paths, separated by commas, such as
//
//	metadata.labels,spec.taints,status.conditions.type
//	-metadata.managedFields,-status.conditions.lastHeartbeatTime
//	metadata,-metadata.managedFields,metadata.annotations['example.com/team']
//
// A path consists of names, separated by dots. A name with characters other than letters, digits
// and "_-$/" is written in brackets and single quotes, in which a backslash escapes a quote or a
// backslash. A path applies to every element of the arrays that it passes; it has no indexes,
// wildcards or conditions. A minus before a path excludes it.
//
// The longest path that leads to a member decides whether the member is shown. A member without
// such a path is shown if every path is an exclusion or adds something below an exclusion;
// otherwise it is not shown. An object or array is shown if a path adds a member below it, even if
// that member is missing. In an array, a scalar that is not shown becomes null.
//
// An empty text is the zero Projection. The error has code [Invalid] if text has a syntax error,
// more than 4 KiB, more than 64 paths, or more than 16 names in a path. The same holds for a path
// that is both added and excluded, and for the exclusion of a member that is always shown. If a
// path is wrong, the error contains it. An object may lack a selected member.
func ParseProjection(text string) (Projection, error) {
	if text == "" {
		return Projection{}, nil
	}
	mask, err := rawjson.ParseMask(text)
	if err != nil {
		return Projection{}, &Error{Code: Invalid, Message: "fields: " + err.Error()}
	}
	return Projection{mask}, nil
}

// String returns p in canonical form: sorted, and without paths that have no effect. Projections
// that show the same members have the same form. The form of the zero Projection is empty.
func (p Projection) String() string {
	if p.mask == nil {
		return ""
	}
	return p.mask.String()
}

// Empty reports whether p shows whole objects.
func (p Projection) Empty() bool { return p.mask == nil }

// Covers reports whether p shows the whole value at path. The elements of path are names.
func (p Projection) Covers(path ...string) bool { return p.mask == nil || p.mask.Covers(path...) }

// Contains reports whether p shows all members that q shows, so that q can be applied to objects
// that p has reduced.
func (p Projection) Contains(q Projection) bool {
	return p.mask == nil || q.mask != nil && p.mask.Contains(q.mask)
}

// Append appends object, the compact JSON of an object as in [Object.Data], reduced to the members
// of p. The members keep their order and their exact text.
func (p Projection) Append(dst, object []byte) []byte {
	if p.mask == nil {
		return append(dst, object...)
	}
	return p.mask.Append(dst, object)
}

// Reduce returns o, reduced to the members of p. The result has the Labels in its reduced Data, and
// no Fields.
func (p Projection) Reduce(o *Object) *Object {
	if p.mask == nil {
		return o
	}
	reduced := &Object{Key: o.Key, Version: o.Version, Data: p.mask.Append(make([]byte, 0, len(o.Data)/4), o.Data)}
	if p.mask.Covers("metadata", "labels") {
		reduced.Labels = o.Labels
	} else if labels := rawjson.Lookup(reduced.Data, "metadata", "labels"); labels != nil {
		reduced.Labels, _ = rawjson.StringMap(labels) // as in o.Data
	}
	return reduced
}

// Hides reports whether p shows old and now alike, apart from the resourceVersion. It returns false
// if members that p shows have changed their order.
func (p Projection) Hides(old, now *Object) bool {
	return p.mask != nil && p.mask.Hides(old.Data, now.Data)
}
