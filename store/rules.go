package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// maxAnnotationBytes limits the names and values of all annotations of an object, as in
// Kubernetes.
const maxAnnotationBytes = 256 << 10

// causeTooLong is Kubernetes' reason for a value that is too large (metav1.CauseType).
const causeTooLong = "FieldValueTooLong"

// checkRules returns an error of status 422 with a cause for each rule that sub breaks. If isCreate
// is false, sub replaces an object.
func (s CollectionSpec) checkRules(sub *submission, isCreate bool) error {
	var c causes
	s.checkGenerateName(sub.generateName, isCreate, &c)
	s.checkNames(sub, &c)
	if err := listwatch.CheckLabels(sub.labels); err != nil {
		for _, cause := range listwatch.AsError(err).Details.Causes {
			c.add(cause.Reason, cause.Field, "Invalid value: %s", cause.Message)
		}
	}
	checkAnnotations(sub.doc, &c)
	for _, name := range sub.finalizers {
		checkQualifiedName("metadata.finalizers", "finalizer", name, &c)
	}
	if slices.Contains(sub.finalizers, "orphan") && slices.Contains(sub.finalizers, "foregroundDeletion") {
		c.add(listwatch.CauseInvalid, "metadata.finalizers",
			"Invalid value: finalizer orphan and foregroundDeletion cannot be both set")
	}
	checkOwners(sub.doc, &c)
	if c == nil {
		return nil
	}
	return s.invalid(sub.key.Name, c)
}

// checkGenerateName checks prefix, a generateName. An update makes no name of it, so any part of a
// path is valid then, as in Kubernetes for custom resources.
func (s CollectionSpec) checkGenerateName(prefix string, isCreate bool, c *causes) {
	check := checkSegment
	if isCreate {
		check = s.checkName
	}
	if prefix == "" {
		return
	}
	if err := check(maskHyphen(prefix)); err != nil {
		c.add(listwatch.CauseInvalid, "metadata.generateName", "Invalid value: %s", messageOf(err))
	}
}

func (s CollectionSpec) checkNames(sub *submission, c *causes) {
	switch {
	case sub.key.Name == "":
		c.add(listwatch.CauseRequired, "metadata.name", "Required value: name or generateName is required")
	default:
		if err := s.checkName(sub.key.Name); err != nil {
			c.add(listwatch.CauseInvalid, "metadata.name", "Invalid value: %s", messageOf(err))
		}
	}
	switch {
	case s.Namespaced && sub.key.Namespace == "":
		c.add(listwatch.CauseRequired, "metadata.namespace", "Required value")
	case s.Namespaced:
		if err := listwatch.CheckNamespace(sub.key.Namespace); err != nil {
			c.add(listwatch.CauseInvalid, "metadata.namespace", "Invalid value: %s", messageOf(err))
		}
	}
}

// maskHyphen returns the name to check in place of prefix, which is a generateName. As in
// Kubernetes, a hyphen at the end and the character before it become an "a", so that "web-" is
// valid.
func maskHyphen(prefix string) string {
	if len(prefix) > 1 && strings.HasSuffix(prefix, "-") {
		return prefix[:len(prefix)-2] + "a"
	}
	return prefix
}

// checkName checks that name can be one segment of a URL path, and then calls s.CheckName.
func (s CollectionSpec) checkName(name string) error {
	if err := checkSegment(name); err != nil {
		return err
	}
	return s.CheckName(name)
}

func checkSegment(name string) error {
	if name == "." || name == ".." || strings.ContainsAny(name, "/%") {
		return badRequest("name %q: must be one segment of a path: not '.' or '..', and without '/' and '%%'", name)
	}
	return nil
}

// messageOf returns the text of err without its code.
func messageOf(err error) string {
	if e := listwatch.AsError(err); e.Message != "" {
		return e.Message
	}
	return err.Error()
}

// checkAnnotations checks the names and the total size of the annotations.
func checkAnnotations(d *document, c *causes) {
	const field = "metadata.annotations"
	m := findMember(d.metadata, "annotations")
	if m == nil || isNull(m.Value) {
		return
	}
	size := 0
	// Members returns no error, because readMetadata has checked the types.
	_ = rawjson.Members(m.Value, func(name string, value rawjson.Span) error {
		checkQualifiedName(field, "annotation", name, c)
		text, _ := rawjson.String(value.Of(m.Value))
		size += len(name) + len(text)
		return nil
	})
	if size > maxAnnotationBytes {
		c.add(causeTooLong, field, "Too long: may not be more than %d bytes", maxAnnotationBytes)
	}
}

// checkQualifiedName checks a name by the rule for label keys, except that the prefix may have
// capital letters.
func checkQualifiedName(field, kind, name string, c *causes) {
	labelKey := name
	if prefix, rest, found := strings.Cut(name, "/"); found {
		labelKey = strings.ToLower(prefix) + "/" + rest
	}
	if err := listwatch.CheckLabels(map[string]string{labelKey: ""}); err != nil {
		reason := strings.TrimPrefix(listwatch.AsError(err).Details.Causes[0].Message, fmt.Sprintf("label key %q: ",
			labelKey))
		c.add(listwatch.CauseInvalid, field, "Invalid value: %s %q: %s", kind, name, reason)
	}
}

// checkOwners checks that each owner reference is complete, and that controller is true in at most
// one of them.
func checkOwners(d *document, c *causes) {
	m := findMember(d.metadata, "ownerReferences")
	if m == nil || isNull(m.Value) {
		return
	}
	controllers, i := 0, 0
	// Elements returns no error, because readMetadata has checked the types.
	_ = rawjson.Elements(m.Value, func(value rawjson.Span) error {
		owner := value.Of(m.Value)
		text := func(name string) string {
			text, _ := rawjson.String(rawjson.Lookup(owner, name))
			return text
		}
		// Kubernetes deletes Events after a while, so an Event must not own an object.
		if text("apiVersion") == "v1" && text("kind") == "Event" {
			c.add(listwatch.CauseInvalid, fmt.Sprintf("metadata.ownerReferences[%d]",
				i), "Invalid value: /v1, Kind=Event is disallowed from being an owner")
		}
		for _, name := range []string{"apiVersion", "kind", "name", "uid"} {
			if text(name) == "" {
				c.add(listwatch.CauseRequired, fmt.Sprintf("metadata.ownerReferences[%d].%s",
					i, name), "Required value: must not be empty")
			}
		}
		if string(rawjson.Lookup(owner, "controller")) == "true" {
			controllers++
		}
		i++
		return nil
	})
	if controllers > 1 {
		c.add(listwatch.CauseInvalid, "metadata.ownerReferences",
			"Invalid value: only one reference can have controller set to true, %d have", controllers)
	}
}
