package store

import (
	"bytes"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Document is the JSON of an object that a client sent, after the checks that need no collection.
// It is immutable, so one Document can be written several times.
type Document struct {
	json       []byte
	duplicates []string
	outOfRange string
	parts      parts
}

// maxDepth is the greatest nesting depth of an object. The strictest parser of a known client
// accepts 255 levels (Gson, in the Java client of Kubernetes), and lists and events add a few
// levels. A deeper object would make whole lists unreadable.
const maxDepth = 240

// ParseDocument returns the Document of data, which may contain white space. If an object in data
// has several members with the same name, the Document has the last one. Errors have code Invalid
// and status 400, as in Kubernetes: data must be a JSON object of at most 240 levels.
func ParseDocument(data []byte) (*Document, error) {
	compact, err := rawjson.Compact(data)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the object must be JSON: " + err.Error()}
	}
	r := rawjson.Inspect(compact)
	if r.Depth > maxDepth {
		return nil, badRequest("the object is nested %d levels deep; %d are allowed", r.Depth, maxDepth)
	}
	d, err := splitDocument(r.Unique)
	if err != nil {
		return nil, err
	}
	d.duplicates, d.outOfRange = r.Dropped, string(r.OutOfRange)
	return d, nil
}

// parseUnique is like ParseDocument, but refuses duplicate members.
func parseUnique(data []byte) (*Document, error) {
	d, err := ParseDocument(data)
	if err == nil && d.duplicates != nil {
		const maxShown = 10
		return nil, badRequest("the object has more than one %s: readers would disagree on which one counts",
			strings.Join(d.duplicates[:min(len(d.duplicates), maxShown)], ", "))
	}
	return d, err
}

// splitDocument splits the JSON of an object, which must be compact.
func splitDocument(compact []byte) (*Document, error) {
	d := &Document{json: compact}
	var err error
	if d.parts.members, err = rawjson.Split(compact); err != nil {
		return nil, badRequest("the object: %v", err)
	}
	metadata := findMember(d.parts.members, "metadata")
	if metadata == nil || metadata.Value[0] != '{' {
		return d, nil // checkMetadataTypes refuses metadata of another type
	}
	if d.parts.metadata, err = rawjson.Split(metadata.Value); err != nil {
		return nil, badRequest("metadata: %v", err)
	}
	return d, nil
}

// JSON returns the compact JSON of the object. The caller must not modify it.
func (d *Document) JSON() []byte { return d.json }

// Duplicates returns the paths of the members that ParseDocument dropped because a later member has
// the same name, such as spec.ports[0].name.
func (d *Document) Duplicates() []string { return d.duplicates }

// OutOfRange returns the first number in the data of ParseDocument that exceeds the range of
// float64, or "" if there is none. Some clients cannot decode such a number.
func (d *Document) OutOfRange() string { return d.outOfRange }

// Lookup returns the value at path, a list of member names, or nil if there is none. The caller
// must not modify it.
func (d *Document) Lookup(path ...string) []byte {
	if len(path) == 0 {
		return d.json
	}
	m := findMember(d.parts.members, path[0])
	if len(path) > 1 && path[0] == "metadata" {
		path, m = path[1:], findMember(d.parts.metadata, path[1])
	}
	if m == nil {
		return nil
	}
	return rawjson.Lookup(m.Value, path[1:]...)
}

// parts are the members of an object. Setting one of them leaves the bytes of all others as the
// client sent them.
type parts struct {
	members  []rawjson.Member // the members of the object
	metadata []rawjson.Member // the members of its metadata
	size     int              // an upper bound on the length of the rendered JSON
}

// preconditions returns the uid and the resourceVersion in the metadata.
func (d *Document) preconditions() (p listwatch.Preconditions, err error) {
	if p.UID, err = d.parts.metadataString("uid"); err != nil {
		return p, err
	}
	version, err := d.parts.metadataString("resourceVersion")
	if err != nil {
		return p, err
	}
	p.Version, err = listwatch.ParseVersion(version)
	return p, err
}

// addedMembers is the number of members that a write may add to the metadata.
const addedMembers = 6

// changeable returns a copy of the parts of d. It always has metadata, so that a later check
// reports the missing fields of the metadata, such as the name, and not the missing metadata.
func (d *Document) changeable() parts {
	p := parts{
		members:  append(make([]rawjson.Member, 0, len(d.parts.members)+3), d.parts.members...),
		metadata: append(make([]rawjson.Member, 0, len(d.parts.metadata)+addedMembers), d.parts.metadata...),
		size:     len(d.json),
	}
	if findMember(p.members, "metadata") == nil {
		p.size += len(`"metadata":{},`)
		p.members = append(p.members, rawjson.Member{Name: "metadata", Key: quote("metadata"), Value: []byte("{}")})
	}
	return p
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
func (p *parts) string(name string) (string, error) {
	return memberString(findMember(p.members, name), "", name)
}

// metadataString is like parts.string, for a member of the metadata.
func (p *parts) metadataString(name string) (string, error) {
	return memberString(findMember(p.metadata, name), "metadata.", name)
}

func memberString(m *rawjson.Member, prefix, name string) (string, error) {
	if m == nil {
		return "", nil
	}
	s, err := rawjson.String(m.Value)
	if err != nil {
		return "", badRequest("%s%s: %v", prefix, name, err)
	}
	return s, nil
}

// labels returns metadata.labels, or nil if there are none.
func (p *parts) labels() (map[string]string, error) {
	m := findMember(p.metadata, "labels")
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
func (p *parts) setMetadata(name string, value []byte) {
	p.size += len(name) + len(value) + len(`"":,`)
	if m := findMember(p.metadata, name); m != nil {
		m.Value = value
		return
	}
	p.metadata = append(p.metadata, rawjson.Member{Name: name, Key: quote(name), Value: value})
}

// dropMetadata removes a member of the metadata.
func (p *parts) dropMetadata(name string) {
	p.metadata = slices.DeleteFunc(p.metadata, func(m rawjson.Member) bool { return m.Name == name })
}

// normalizeMap replaces null values in a map of strings in the metadata with empty strings, and
// drops an empty map. Kubernetes does the same when it decodes an object into its Go types.
func (p *parts) normalizeMap(name string) error {
	m := findMember(p.metadata, name)
	if m == nil {
		return nil
	}
	if string(m.Value) == "{}" || isNull(m.Value) {
		p.dropMetadata(name)
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

// setDefault sets a member of the object to a string, unless it already is a string that is not
// empty. A new member is added at the front.
func (p *parts) setDefault(name, value string) {
	if s, err := p.string(name); err == nil && s != "" {
		return
	}
	p.size += len(name) + len(value) + len(`"":"",`)
	if m := findMember(p.members, name); m != nil {
		m.Value = quote(value)
		return
	}
	p.members = slices.Insert(p.members, 0, rawjson.Member{Name: name, Key: quote(name), Value: quote(value)})
}

// quote returns s as a JSON string.
func quote(s string) []byte { return rawjson.AppendString(nil, s) }

// render returns the JSON of d before and after the value of metadata.resourceVersion.
func (p *parts) render() (before, after []byte) {
	buf := append(make([]byte, 0, p.size), '{')
	split := 0
	for i, m := range p.members {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(buf, m.Key...), ':')
		if m.Name != "metadata" {
			buf = append(buf, m.Value...)
			continue
		}
		buf, split = p.renderMetadata(append(buf, '{'))
	}
	buf = append(buf, '}')
	return buf[:split:split], buf[split:]
}

func (p *parts) renderMetadata(buf []byte) (_ []byte, split int) {
	for i, m := range p.metadata {
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
