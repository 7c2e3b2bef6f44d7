package store

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A submission is an object that a writer sent, before it becomes a [Draft]. Members of the
// metadata that the server sets stay where the writer put them. If they are absent, they are added
// at the end, in this order: name, namespace, uid, resourceVersion, generation, creationTimestamp.
type submission struct {
	doc          *document
	key          listwatch.Key
	generateName string
	isGenerated  bool // key.Name is made from generateName
	labels       map[string]string
	finalizers   []string
}

// parseSubmission parses data and checks the rules. The parameter want holds the required key of
// the object; an empty namespace or name in it means that any is accepted.
func (s CollectionSpec) parseSubmission(data []byte, want listwatch.Key) (*submission, error) {
	doc, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	sub := &submission{doc: doc}
	if err := s.setType(doc); err != nil {
		return nil, err
	}
	if err := sub.readMetadata(); err != nil {
		return nil, err
	}
	if !s.Namespaced && sub.key.Namespace != "" && !s.DropNamespace {
		return nil, badRequest("metadata.namespace is %q, but %s have no namespaces", sub.key.Namespace, s.QualifiedName())
	}
	if !s.Namespaced {
		sub.key.Namespace = ""
		doc.dropMetadata("namespace")
	}
	if err := checkKey(sub.key, want); err != nil {
		return nil, err
	}
	if sub.key.Name == "" && sub.generateName != "" {
		sub.isGenerated, sub.key.Name = true, generateName(sub.generateName)
	}
	if want.Namespace != "" {
		sub.key.Namespace = want.Namespace
	}
	if causes := s.brokenRules(sub); causes != nil {
		return nil, s.invalid(sub.key.Name, causes)
	}
	return sub, nil
}

// checkKey returns an error if the name or namespace in got differs from the one in want. It
// accepts any value where want is empty, and a submission without a namespace.
func checkKey(got, want listwatch.Key) error {
	if want.Name != "" && got.Name != want.Name {
		return badRequest("the name of the object (%s) does not match the name of the request (%s)", got.Name, want.Name)
	}
	if want.Namespace != "" && got.Namespace != "" && got.Namespace != want.Namespace {
		return badRequest("the namespace of the object (%s) does not match the namespace of the request (%s)", got.Namespace, want.Namespace)
	}
	return nil
}

// setType adds kind and apiVersion at the front of doc if they are absent. It returns an
// error if they are present with other values than in s.
func (s CollectionSpec) setType(doc *document) error {
	for _, m := range []struct{ name, want string }{{"apiVersion", s.APIVersion}, {"kind", s.Kind}} {
		got, err := doc.string(m.name)
		if err != nil {
			return err
		}
		switch {
		case got == m.want:
		case got != "":
			return badRequest("%s is %q, but %s holds %q", m.name, got, s.QualifiedName(), m.want)
		default:
			doc.setString(m.name, m.want)
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

// prepareCreate sets the metadata that the server sets on a new object.
func (s *submission) prepareCreate(now time.Time) {
	s.setKey()
	s.doc.keepDeletionMarks(nil)
	s.doc.setMetadata("uid", quote(newUID()))
	s.doc.setMetadata("resourceVersion", nil)
	s.doc.setMetadata("generation", []byte("1"))
	s.doc.setMetadata("creationTimestamp", quoteTime(now))
}

// prepareUpdate copies the metadata that a writer cannot change, from the old object into the new
// one. It reports whether the new object differs from the old one in more than the order of
// members.
func (s *submission) prepareUpdate(old *document, now time.Time) (changed bool) {
	s.setKey()
	s.doc.keepDeletionMarks(old)
	contentChanged := !equalMembers(s.doc.members, old.members, "kind", "apiVersion", "metadata", "status")
	if !contentChanged &&
		equalMembers(s.doc.members, old.members, "metadata") &&
		equalMembers(s.doc.metadata, old.metadata, append(deletionMarks[:], "uid", "resourceVersion", "generation", "creationTimestamp")...) {
		return false
	}
	uid, created := findMember(old.metadata, "uid"), findMember(old.metadata, "creationTimestamp")
	if uid == nil || created == nil {
		// Another program wrote the object without a uid.
		uid = &rawjson.Member{Value: quote(newUID())}
		created = &rawjson.Member{Value: quoteTime(now)}
	}
	generation := generationOf(old)
	if contentChanged {
		generation++
	}
	s.doc.setMetadata("uid", uid.Value)
	s.doc.setMetadata("resourceVersion", nil)
	s.doc.setMetadata("generation", strconv.AppendInt(nil, generation, 10))
	s.doc.setMetadata("creationTimestamp", created.Value)
	return true
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

func generationOf(d *document) int64 {
	m := findMember(d.metadata, "generation")
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(m.Value), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// equalMembers reports whether a and b have the same members, except for the ignored ones.
func equalMembers(a, b []rawjson.Member, ignored ...string) bool {
	relevant := func(members []rawjson.Member) []rawjson.Member {
		return slices.DeleteFunc(slices.Clone(members), func(m rawjson.Member) bool { return slices.Contains(ignored, m.Name) })
	}
	return rawjson.EqualMembers(relevant(a), relevant(b))
}

// draft returns sub as a Draft for a backend.
func (s CollectionSpec) draft(sub *submission) *Draft {
	before, after := sub.doc.render()
	d := &Draft{Key: sub.key, Labels: sub.labels, Before: before, After: after}
	if len(s.Fields) > 0 {
		d.Fields = s.ReadFields(unversioned(d).Data)
	}
	return d
}

func quoteTime(t time.Time) []byte { return quote(t.UTC().Format(time.RFC3339)) }

// newUID returns a random UUID (RFC 9562, version 4).
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never returns an error
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}
