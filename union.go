package listwatch

import "strings"

// NewUnionSynced returns the Synced event of a union, which is a watch of several collections.
// [PartsOf] the event is parts, of which only Kind and APIVersion are used. d describes the union.
func NewUnionSynced(d Description, v Version, parts []Description) Event {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.typeName()
	}
	b := newBookmark(d, v)
	b.annotate(AnnotationSynced, "true")
	b.annotate(AnnotationParts, strings.Join(names, ","))
	return b.event(Synced)
}

// AnnotationParts has, in the Synced event of a union, the types of the objects of its parts, in
// their order, such as "Node.v1,Deployment.v1.apps".
const AnnotationParts = "listwatch.dev/parts"

// PartsOf returns the types of the objects in the parts of a union, in the order of the parts, if e
// is the Synced event of a union. Otherwise it returns nil.
func PartsOf(e Event) (parts []Description) {
	text, ok := e.annotation(AnnotationParts)
	if !ok || text == "" {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		kind, version, _ := strings.Cut(name, ".")
		version, group, hasGroup := strings.Cut(version, ".")
		if hasGroup {
			version = group + "/" + version
		}
		parts = append(parts, Description{APIVersion: version, Kind: kind})
	}
	return parts
}

// typeName returns the type that d describes as KIND.VERSION or KIND.VERSION.GROUP.
func (d Description) typeName() string {
	group, version, ok := strings.Cut(d.APIVersion, "/")
	if !ok {
		return d.Kind + "." + d.APIVersion
	}
	return d.Kind + "." + version + "." + group
}
