package listwatch

import "strings"

// A Uniter is a Source that can be watched together with other collections of its database.
type Uniter interface {
	Source
	// Union returns a Source of the objects of all parts. A watch of the union is one stream in the
	// order of versions. Its initial events are the state of all parts at one version, in the order
	// of parts. So one version is the resume point of all parts. If a part lacks history, the watch
	// is [Expired]. The kind and apiVersion of an object show to which part it belongs. A list has
	// one page. Selection and Limit of a Query have no effect.
	//
	// If the parts are not different collections of the database of this Source, the error has code
	// [Invalid].
	Union(parts ...Part) (Source, error)
}

// A Part is a part of a union: the objects of Source that Selection selects.
type Part struct {
	Source Source
	Selection
}

// Parts returns the types of the objects in the parts of a union, in the order of the parts, if e
// is the Synced event of a union. Otherwise it returns nil.
func (e Event) Parts() (parts []Description) {
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
