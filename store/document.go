package store

import (
	"bytes"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A document is the JSON of an object, split into members. Setting one member leaves the bytes of
// all other members as the writer sent them.
type document struct {
	members  []rawjson.Member // the members of the object
	metadata []rawjson.Member // the members of its metadata
	size     int              // an upper bound on the length of the rendered JSON
}

// maxDepth is the greatest nesting depth of an object. The strictest parser of a known client
// accepts 255 levels (Gson, in the Java client of Kubernetes), and lists and events add a few
// levels. A deeper object would make whole lists unreadable.
const maxDepth = 240

// parseDocument checks and splits the JSON of an object, which may contain white space. As in
// Kubernetes, errors have status 400.
func parseDocument(data []byte) (*document, error) {
	compact, err := compactObject(data)
	if err != nil {
		return nil, err
	}
	if n := rawjson.Depth(compact); n > maxDepth {
		return nil, badRequest("the object is nested %d levels deep; %d are allowed", n, maxDepth)
	}
	if _, duplicates := rawjson.DropDuplicates(compact); duplicates != nil {
		const maxShown = 10
		return nil, badRequest("the object has more than one %s: readers would disagree on which one counts",
			strings.Join(duplicates[:min(len(duplicates), maxShown)], ", "))
	}
	return splitDocument(withMetadata(compact))
}

// withMetadata adds empty metadata to an object that has none. Then a later check reports the
// missing fields of the metadata, such as the name, and not the missing metadata.
func withMetadata(compact []byte) []byte {
	metadata, err := rawjson.Find(compact, "metadata")
	switch {
	case err != nil:
		return compact
	case metadata.Empty():
		member := []byte(`,"metadata":{}}`)
		if string(compact) == "{}" {
			member = member[1:]
		}
		return slices.Concat(compact[:len(compact)-1], member)
	case isNull(metadata.Of(compact)):
		return slices.Concat(compact[:metadata.Start], []byte("{}"), compact[metadata.End:])
	}
	return compact
}

func compactObject(data []byte) ([]byte, error) {
	compact, err := rawjson.Compact(data)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the object must be JSON: " + err.Error()}
	}
	return compact, nil
}

// splitDocument splits the JSON of an object, which must be compact. It returns an error if the
// object has no metadata.
func splitDocument(compact []byte) (*document, error) {
	d := &document{size: len(compact)}
	var err error
	if d.members, err = rawjson.Split(compact); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the object: " + err.Error()}
	}
	metadata := findMember(d.members, "metadata")
	if metadata == nil {
		return nil, badRequest("the object has no metadata, which must hold its name")
	}
	if d.metadata, err = rawjson.Split(metadata.Value); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "metadata: " + err.Error()}
	}
	return d, nil
}

func findMember(members []rawjson.Member, name string) *rawjson.Member {
	for i := range members {
		if members[i].Name == name {
			return &members[i]
		}
	}
	return nil
}

func isNull(raw []byte) bool { return string(raw) == "null" }

// string returns the content of the given member of the object, which must be a string. If the
// member is absent or null, the result is empty.
func (d *document) string(name string) (string, error) {
	return memberString(findMember(d.members, name), name)
}

// metadataString is like document.string, for a member of the metadata.
func (d *document) metadataString(name string) (string, error) {
	return memberString(findMember(d.metadata, name), "metadata."+name)
}

func memberString(m *rawjson.Member, path string) (string, error) {
	if m == nil {
		return "", nil
	}
	s, err := rawjson.String(m.Value)
	if err != nil {
		return "", badRequest("%s: %v", path, err)
	}
	return s, nil
}

// labels returns metadata.labels, or nil if there are none.
func (d *document) labels() (map[string]string, error) {
	m := findMember(d.metadata, "labels")
	if m == nil {
		return nil, nil
	}
	labels, err := rawjson.StringMap(m.Value)
	if err != nil {
		return nil, badRequest("metadata.labels: %v", err)
	}
	if len(labels) == 0 {
		return nil, nil
	}
	return labels, nil
}

// setMetadata sets a member of the metadata to raw JSON. A new member is added at the end.
func (d *document) setMetadata(name string, value []byte) {
	d.size += len(name) + len(value) + len(`"":,`)
	if m := findMember(d.metadata, name); m != nil {
		m.Value = value
		return
	}
	d.metadata = append(d.metadata, rawjson.Member{Name: name, Key: quote(name), Value: value})
}

// dropMetadata removes a member of the metadata.
func (d *document) dropMetadata(name string) {
	d.metadata = slices.DeleteFunc(d.metadata, func(m rawjson.Member) bool { return m.Name == name })
}

// normalizeMap replaces null values in a map of strings in the metadata with empty strings, and
// drops an empty map. Kubernetes does the same when it decodes an object into its Go types.
func (d *document) normalizeMap(name string) error {
	m := findMember(d.metadata, name)
	if m == nil {
		return nil
	}
	if string(m.Value) == "{}" || isNull(m.Value) {
		d.dropMetadata(name)
		return nil
	}
	if !bytes.Contains(m.Value, []byte("null")) {
		return nil
	}
	members, err := rawjson.Split(m.Value)
	if err != nil {
		return badRequest("metadata.%s: %v", name, err)
	}
	out := []byte{'{'}
	for i, member := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, member.Key...), ':')
		if isNull(member.Value) {
			out = append(out, `""`...)
		} else {
			out = append(out, member.Value...)
		}
	}
	m.Value = append(out, '}')
	return nil
}

// setString sets a member of the object to a string. A new member is added at the front.
func (d *document) setString(name, value string) {
	d.size += len(name) + len(value) + len(`"":"",`)
	if m := findMember(d.members, name); m != nil {
		m.Value = quote(value)
		return
	}
	d.members = slices.Insert(d.members, 0, rawjson.Member{Name: name, Key: quote(name), Value: quote(value)})
}

// quote returns s as a JSON string.
func quote(s string) []byte { return rawjson.AppendString(nil, s) }

// render returns the JSON of d before and after the value of metadata.resourceVersion.
func (d *document) render() (before, after []byte) {
	buf := append(make([]byte, 0, d.size), '{')
	split := 0
	for i, m := range d.members {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(buf, m.Key...), ':')
		if m.Name != "metadata" {
			buf = append(buf, m.Value...)
			continue
		}
		buf, split = d.renderMetadata(append(buf, '{'))
	}
	buf = append(buf, '}')
	return buf[:split:split], buf[split:]
}

func (d *document) renderMetadata(buf []byte) (_ []byte, split int) {
	for i, m := range d.metadata {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(buf, m.Key...), ':')
		if m.Name == "resourceVersion" {
			split = len(buf)
			continue
		}
		buf = append(buf, m.Value...)
	}
	return append(buf, '}'), split
}
