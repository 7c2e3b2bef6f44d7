package listwatch

import (
	"cmp"
	"slices"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A FieldRule defines the value that field selectors see for a field. Without a rule, the name of
// the field is the path of its value. The value is the text of a string, or the JSON of a number or
// a boolean. Any other value counts as absent. The value of an absent field is empty.
type FieldRule struct {
	// Paths are the paths of the value. The first one with a value that is not empty is used. If
	// nil, the name of the field is the only path.
	Paths []string
	// Absent is the value of a field that is absent, such as "false" for a boolean that Kubernetes
	// omits from the JSON of objects.
	Absent string
}

// ReadFields returns the values of d.Fields in data, the compact JSON of an object or an object in
// d.Encoding, for [Object.Fields]. It returns nil if all of them are empty.
func (d Description) ReadFields(data []byte) map[string]string {
	if len(d.Fields) == 0 {
		return nil
	}
	paths := slices.Clip(d.Fields)
	for _, field := range d.Fields {
		paths = append(paths, d.FieldRules[field].Paths...)
	}
	read := rawjson.Fields
	if d.Encoding != nil {
		read = d.Encoding.Fields
	}
	values := read(data, paths)
	ruled := values[len(d.Fields):] // the values at the paths of the rules
	var fields map[string]string
	for i, field := range d.Fields {
		rule, value := d.FieldRules[field], values[i]
		if n := len(rule.Paths); n > 0 {
			value, ruled = cmp.Or(ruled[:n]...), ruled[n:]
		}
		if value = cmp.Or(value, rule.Absent); value == "" {
			continue
		}
		if fields == nil {
			fields = make(map[string]string, len(d.Fields))
		}
		fields[field] = value
	}
	return fields
}

// FieldPaths returns the paths of the members from which the value of a field is read.
func (d Description) FieldPaths(field string) []string {
	if paths := d.FieldRules[field].Paths; paths != nil {
		return paths
	}
	return []string{field}
}
