package rawjson

import (
	"errors"
	"fmt"
)

// Metadata holds the members of an object's metadata that identify the object and that
// selectors use.
type Metadata struct {
	Namespace, Name string
	ResourceVersion string // as written, without the quotes
	Labels          map[string]string
}

var errNoMetadata = errors.New("the object has no metadata")

// ReadMetadata reads doc, a compact JSON object. newMap returns an empty map for the labels. If it
// returns nil, ReadMetadata creates a map.
func ReadMetadata(doc []byte, newMap func() map[string]string) (m Metadata, err error) {
	span, err := Find(doc, "metadata")
	if err != nil {
		return m, err
	}
	if span.Empty() {
		return m, errNoMetadata
	}
	metadata := span.Of(doc)
	err = Members(metadata, func(name string, value Span) (err error) {
		switch name {
		case "name":
			m.Name, err = String(value.Of(metadata))
		case "namespace":
			m.Namespace, err = String(value.Of(metadata))
		case "resourceVersion":
			m.ResourceVersion, err = String(value.Of(metadata))
		case "labels":
			m.Labels, err = FillStringMap(newMap(), value.Of(metadata))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return m, fmt.Errorf("metadata: %w", err)
	}
	return m, nil
}

// Append returns a copy of doc, a JSON object, with one more member at the end. member is the JSON
// of its name and value, such as "a":1.
func Append(doc []byte, member string) []byte {
	out := make([]byte, 0, len(doc)+1+len(member))
	out = append(out, doc[:len(doc)-1]...)
	if len(doc) > len("{}") {
		out = append(out, ',')
	}
	out = append(out, member...)
	return append(out, '}')
}

// Splice concatenates its arguments. It writes text as a JSON string in quotes, so text must not
// need escapes. Splice allocates only once.
func Splice(before []byte, text string, after []byte) []byte {
	doc := make([]byte, 0, len(before)+len(text)+2+len(after))
	doc = append(doc, before...)
	doc = append(doc, '"')
	doc = append(doc, text...)
	doc = append(doc, '"')
	return append(doc, after...)
}
