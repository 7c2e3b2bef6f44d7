package rawjson

import "bytes"

// Fields returns the value at each of the paths in doc. In a path, dots separate the names of
// members. The value of a string is its text, and the value of a number or boolean is its JSON.
// Everything else counts as absent, and its value is empty. Fields reads doc only once if there
// are at most 64 paths.
func Fields(doc []byte, paths []string) []string {
	values := make([]string, len(paths))
	if len(doc) < 2 || doc[0] != '{' {
		return values
	}
	for first := 0; first < len(paths); first += 64 {
		f := fieldReader{doc: doc, paths: paths[first:min(first+64, len(paths))]}
		f.object(0, 0, 1<<len(f.paths)-1)
		for i := range f.paths {
			values[first+i] = scalar(f.values[i].Of(doc))
		}
	}
	return values
}

// A fieldReader reads the values at paths. A set of paths is a mask of their indexes.
type fieldReader struct {
	doc    []byte
	paths  []string
	values [64]Span // by the index of the path; empty if the value is absent
}

// object reads the object that starts at doc[i], and returns the index after it. within are the
// paths into the object. In all of them, the names of its members start at the given offset.
func (f *fieldReader) object(i, offset int, within uint64) int {
	i++
	for f.doc[i] != '}' {
		key := Span{i, StringEnd(f.doc, i)}
		start := key.End + 1
		ends, deeper, length := f.match(key.Of(f.doc), offset, within)
		f.set(ends|deeper, Span{}) // the last member of a name counts
		if deeper != 0 && f.doc[start] == '{' {
			i = f.object(start, offset+length+1, deeper)
		} else {
			i = valueEnd(f.doc, start)
		}
		f.set(ends, Span{start, i})
		if f.doc[i] == ',' {
			i++
		}
	}
	return i + 1
}

// match returns the paths that end at the member with the given key, those that lead deeper into
// its value, and the length of its name.
func (f *fieldReader) match(key []byte, offset int, within uint64) (ends, deeper uint64, length int) {
	name := key[1 : len(key)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		decoded, _ := String(key) // key is a string
		name = []byte(decoded)
	}
	for i, path := range f.paths {
		if within&(1<<i) == 0 || len(path)-offset < len(name) {
			continue
		}
		switch rest := path[offset+len(name):]; {
		case path[offset:offset+len(name)] != string(name):
		case rest == "":
			ends |= 1 << i
		case rest[0] == '.':
			deeper |= 1 << i
		}
	}
	if ends|deeper != 0 && bytes.IndexByte(name, '.') >= 0 {
		return 0, 0, 0 // no path leads to a name with a dot
	}
	return ends, deeper, len(name)
}

// set sets the values of paths.
func (f *fieldReader) set(paths uint64, value Span) {
	for i := 0; paths != 0; i, paths = i+1, paths>>1 {
		if paths&1 != 0 {
			f.values[i] = value
		}
	}
}

// scalar returns the value of raw as text. It is empty if raw is empty, null, an object or an
// array.
func scalar(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '{', '[', 'n':
		return ""
	case '"':
		s, _ := String(raw) // raw is a string
		return s
	}
	return string(raw)
}
