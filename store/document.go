package store

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A document is an object's JSON taken apart, so that a few members of it can be set while the rest stays as it was written.
type document struct {
	members []rawjson.Member // of the object
	meta    []rawjson.Member // of its metadata
	size    int              // of the JSON
}

// maxDepth is how deep objects may nest. Of clients' parsers the strictest gives up at 255 levels (Gson, which Kubernetes' client for Java has),
// Python's at 1,000, and a list and an event have some levels around the object: one that is deeper would make lists unreadable.
const maxDepth = 240

// readDocument takes data apart; space may be in it. Kubernetes answers 400 where that can't be done, and so do we.
func readDocument(data []byte) (*document, error) {
	compact, err := compactObject(data)
	if err != nil {
		return nil, err
	}
	if n := rawjson.Depth(compact); n > maxDepth {
		return nil, badRequest("the object is nested %d levels deep; %d are allowed", n, maxDepth)
	}
	if _, repeated := rawjson.DropDuplicates(compact); repeated != nil {
		const most = 10
		return nil, badRequest("the object has more than one %s: readers would disagree on which one counts",
			strings.Join(repeated[:min(len(repeated), most)], ", "))
	}
	return splitDocument(compact)
}

func compactObject(data []byte) ([]byte, error) {
	compact, err := rawjson.Compact(data)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the object must be JSON", Err: err}
	}
	return compact, nil
}

// splitDocument is readDocument for JSON that is compact already.
func splitDocument(compact []byte) (*document, error) {
	d := &document{size: len(compact)}
	var err error
	if d.members, err = rawjson.Split(compact); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the object", Err: err}
	}
	meta := find(d.members, "metadata")
	if meta == nil {
		return nil, badRequest("the object has no metadata, which must hold its name")
	}
	if d.meta, err = rawjson.Split(meta.Value); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "metadata", Err: err}
	}
	return d, nil
}

func find(members []rawjson.Member, name string) *rawjson.Member {
	for i := range members {
		if members[i].Name == name {
			return &members[i]
		}
	}
	return nil
}

// text returns a member of the object that must be a string; empty where it is absent or null.
func (d *document) text(name string) (string, error) { return textOf(find(d.members, name), name) }

// metaText is text for a member of the metadata.
func (d *document) metaText(name string) (string, error) {
	return textOf(find(d.meta, name), "metadata."+name)
}

func textOf(m *rawjson.Member, path string) (string, error) {
	if m == nil {
		return "", nil
	}
	s, err := rawjson.String(m.Value)
	if err != nil {
		return "", badRequest("%s: %v", path, err)
	}
	return s, nil
}

// labels returns a member of the metadata that must be an object of strings.
func (d *document) labels(name string) (map[string]string, error) {
	m := find(d.meta, name)
	if m == nil {
		return nil, nil
	}
	labels, err := rawjson.StringMap(m.Value)
	if err != nil {
		return nil, badRequest("metadata.%s: %v", name, err)
	}
	if len(labels) == 0 {
		return nil, nil
	}
	return labels, nil
}

// setMeta gives a member of the metadata a raw value where it stands, or at the end.
func (d *document) setMeta(name string, value []byte) {
	d.size += len(name) + len(value) + len(`"":,`)
	if m := find(d.meta, name); m != nil {
		m.Value = value
		return
	}
	d.meta = append(d.meta, rawjson.Member{Name: name, Key: quote(name), Value: value})
}

// setFront gives a member of the object a value where it stands, or before all others.
func (d *document) setFront(name, value string) {
	d.size += len(name) + len(value) + len(`"":"",`)
	if m := find(d.members, name); m != nil {
		m.Value = quote(value)
		return
	}
	d.members = slices.Insert(d.members, 0, rawjson.Member{Name: name, Key: quote(name), Value: quote(value)})
}

// quote spells s in JSON.
func quote(s string) []byte {
	raw, err := json.Marshal(s)
	if err != nil {
		panic("store: a string can't fail to encode: " + err.Error())
	}
	return raw
}

// render joins d anew, on both sides of the value of metadata.resourceVersion.
func (d *document) render() (before, after []byte) {
	buf := append(make([]byte, 0, d.size), '{')
	cut := 0
	for i, m := range d.members {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(buf, m.Key...), ':')
		if m.Name != "metadata" {
			buf = append(buf, m.Value...)
			continue
		}
		buf, cut = d.renderMeta(append(buf, '{'))
	}
	buf = append(buf, '}')
	return buf[:cut:cut], buf[cut:]
}

func (d *document) renderMeta(buf []byte) (_ []byte, cut int) {
	for i, m := range d.meta {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(buf, m.Key...), ':')
		if m.Name == "resourceVersion" {
			cut = len(buf)
			continue
		}
		buf = append(buf, m.Value...)
	}
	return append(buf, '}'), cut
}
