package rawjson

import "strings"

// Fields returns the values at paths in doc, by path. In a path, dots separate the names of
// members. The value of a string is its text, and the value of a number or boolean is its JSON.
// Everything else counts as absent. Fields returns nil if all values are absent.
func Fields(doc []byte, paths []string) map[string]string {
	var fields map[string]string
	lookup := func(path ...string) []byte { return Lookup(doc, path...) }
	if len(paths) > 2 { // otherwise the cache of a Node does not pay off
		root := NewNode(doc)
		lookup = root.Lookup
	}
	for _, path := range paths {
		value, ok := scalar(lookup(strings.Split(path, ".")...))
		if !ok {
			continue
		}
		if fields == nil {
			fields = make(map[string]string, len(paths))
		}
		fields[path] = value
	}
	return fields
}

// Field returns the value at path in doc; see [Fields]. It is empty if the value is absent.
func Field(doc []byte, path string) string {
	value, _ := scalar(Lookup(doc, strings.Split(path, ".")...))
	return value
}

// scalar returns the value of raw as text. It returns false if raw is empty, null, an object or an
// array.
func scalar(raw []byte) (value string, ok bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '{', '[', 'n':
		return "", false
	case '"':
		s, err := String(raw)
		return s, err == nil
	}
	return string(raw), true
}
