package store

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A submission is a [Document] on its way to a [Draft]. Members of the metadata that the server
// sets stay where the writer put them. If they are absent, they are added at the end, in this
// order: name, namespace, uid, resourceVersion, generation, creationTimestamp.
type submission struct {
	doc          parts
	key          listwatch.Key
	generateName string
	isGenerated  bool // key.Name is made from generateName
	labels       map[string]string
	finalizers   []string
}

// checkType returns an error if kind or apiVersion are present with other values than in s.
func (s CollectionSpec) checkType(p *parts) error {
	for _, m := range []struct{ name, want string }{{"apiVersion", s.APIVersion}, {"kind", s.Kind}} {
		got, err := p.string(m.name)
		switch {
		case err != nil:
			return err
		case got != "" && got != m.want:
			return badRequest("%s is %q, but %s holds %q", m.name, got, s.QualifiedName(), m.want)
		}
	}
	return nil
}

// readMetadata reads the metadata that the rules apply to. A member of a wrong type is a bad
// request.
func (s *submission) readMetadata() (err error) {
	if err := checkMetadataTypes(findMember(s.doc.members, "metadata").Value); err != nil {
		return err
	}
	if s.key.Name, err = s.doc.metadataString("name"); err != nil {
		return err
	}
	if s.key.Namespace, err = s.doc.metadataString("namespace"); err != nil {
		return err
	}
	if s.generateName, err = s.doc.metadataString("generateName"); err != nil {
		return err
	}
	s.doc.dropMetadata("selfLink") // Kubernetes no longer sets or stores it
	for _, name := range []string{"managedFields", "finalizers", "ownerReferences"} {
		if m := findMember(s.doc.metadata, name); m != nil && (string(m.Value) == "[]" || isNull(m.Value)) {
			s.doc.dropMetadata(name)
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		if err := s.doc.normalizeMap(name); err != nil {
			return err
		}
	}
	if s.labels, err = s.doc.labels(); err != nil {
		return err
	}
	s.finalizers, err = s.doc.finalizers()
	return err
}

// setKey adds the name and the namespace if the writer left them out.
func (s *submission) setKey() {
	if got, err := s.doc.metadataString("name"); err != nil || got != s.key.Name {
		s.doc.setMetadata("name", quote(s.key.Name))
	}
	if got, err := s.doc.metadataString("namespace"); err != nil || got != s.key.Namespace {
		s.doc.setMetadata("namespace", quote(s.key.Namespace))
	}
}

// draft returns sub as a Draft for a backend.
func (s CollectionSpec) draft(sub *submission) *Draft {
	before, after := sub.doc.render()
	d := &Draft{Key: sub.key, Labels: sub.labels, Before: before, After: after}
	if len(s.Fields) > 0 || s.TTL != nil {
		data := d.Unversioned().Data
		d.Fields, d.TTL = s.ReadFields(data), s.ReadTTL(data)
	}
	return d
}

func quoteTime(t time.Time) []byte { return quote(t.UTC().Format(time.RFC3339)) }
