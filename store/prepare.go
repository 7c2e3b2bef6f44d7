package store

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// submit returns a submission of d. The errors have status 400. want is the required key of the
// object. If its namespace or name is empty, any namespace or name is accepted.
func (s CollectionSpec) submit(d *Document, want listwatch.Key) (*submission, error) {
	sub := &submission{doc: d.changeable()}
	doc := &sub.doc
	if err := s.checkType(doc); err != nil {
		return nil, err
	}
	doc.setDefault("apiVersion", s.APIVersion)
	doc.setDefault("kind", s.Kind)
	if err := sub.readMetadata(); err != nil {
		return nil, err
	}
	if !s.Namespaced && sub.key.Namespace != "" && !s.DropNamespace {
		return nil, badRequest("metadata.namespace is %q, but %s have no namespaces",
			sub.key.Namespace, s.QualifiedName())
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
	return sub, nil
}

// checkKey returns an error if got and want have different names or namespaces. It accepts any
// value where want is empty, and a submission without a namespace.
func checkKey(got, want listwatch.Key) error {
	if want.Name != "" && got.Name != want.Name {
		return badRequest("the name of the object (%s) does not match the name of the request (%s)",
			got.Name, want.Name)
	}
	if want.Namespace != "" && got.Namespace != "" && got.Namespace != want.Namespace {
		return badRequest("the namespace of the object (%s) does not match the namespace of the request (%s)",
			got.Namespace, want.Namespace)
	}
	return nil
}

// prepareCreate sets the metadata that the server sets on a new object.
func (s *submission) prepareCreate(rule GenerationRule, now time.Time) {
	s.setKey()
	s.doc.keepDeletionMarks(nil)
	s.doc.setMetadata("uid", quote(newUID()))
	s.doc.setMetadata("resourceVersion", nil)
	rule.setGeneration(&s.doc, nil, true)
	s.doc.setMetadata("creationTimestamp", quoteTime(now))
}

// prepareUpdate copies the metadata that a writer cannot change, from the old object into the new
// one. It reports whether the new object has another value than the old one.
func (s *submission) prepareUpdate(old *parts, rule GenerationRule, now time.Time) (changed bool) {
	s.setKey()
	s.doc.keepDeletionMarks(old)
	contentChanged := !equalMembers(s.doc.members, old.members, "kind", "apiVersion", "metadata", "status")
	if !contentChanged &&
		equalMembers(s.doc.members, old.members, "metadata") &&
		equalMembers(s.doc.metadata, old.metadata,
			append(deletionMarks[:], "uid", "resourceVersion", "generation", "creationTimestamp")...) {
		return false
	}
	uid, created := findMember(old.metadata, "uid"), findMember(old.metadata, "creationTimestamp")
	if uid == nil || created == nil {
		// Another program wrote the object without a uid.
		uid = &rawjson.Member{Value: quote(newUID())}
		created = &rawjson.Member{Value: quoteTime(now)}
	}
	s.doc.setMetadata("uid", uid.Value)
	s.doc.setMetadata("resourceVersion", nil)
	rule.setGeneration(&s.doc, old, contentChanged)
	s.doc.setMetadata("creationTimestamp", created.Value)
	return true
}

// equalMembers reports whether a and b have the same members, apart from the members named in
// ignored.
func equalMembers(a, b []rawjson.Member, ignored ...string) bool {
	relevant := func(members []rawjson.Member) []rawjson.Member {
		return slices.DeleteFunc(slices.Clone(members), func(m rawjson.Member) bool {
			return slices.Contains(ignored, m.Name)
		})
	}
	return rawjson.EqualMembers(relevant(a), relevant(b))
}

// newUID returns a random UUID (RFC 9562, version 4).
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never returns an error
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
