package store

import (
	"encoding/json"
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
	s.checkNames(sub, isCreate, &c)
	if err := listwatch.CheckLabels(sub.labels); err != nil {
		for _, cause := range listwatch.AsError(err).Details.Causes {
			c.add(cause.Reason, cause.Field, "Invalid value: %s", cause.Message)
		}
	}
	checkAnnotations(&sub.doc, &c)
	for _, name := range sub.finalizers {
		checkQualifiedName("metadata.finalizers", "finalizer", name, &c)
	}
	if slices.Contains(sub.finalizers, "orphan") && slices.Contains(sub.finalizers, "foregroundDeletion") {
		value, _ := json.Marshal(sub.finalizers) // strings
		c.add(listwatch.CauseInvalid, "metadata.finalizers",
			"Invalid value: %s: finalizer orphan and foregroundDeletion cannot be both set", value)
	}
	checkOwners(&sub.doc, &c)
	if c == nil {
		return nil
	}
	return s.invalid(sub.key.Name, c)
}

// checkGenerateName checks prefix, a generateName. An update does not generate a name, so it
// accepts any part of a path, as Kubernetes does for custom resources.
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

func (s CollectionSpec) checkNames(sub *submission, isCreate bool, c *causes) {
	switch {
	case s.GeneratedNames && (sub.key.Name == "" || !isCreate): // the backend chooses the name
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
		if err := s.CheckNamespace(sub.key.Namespace); err != nil {
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
func checkAnnotations(d *parts, c *causes) {
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

// An ownerReference is an element of metadata.ownerReferences. Its members have the order that they
// have in Kubernetes' messages.
type ownerReference struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
	Controller         *bool  `json:"controller,omitempty"`
	BlockOwnerDeletion *bool  `json:"blockOwnerDeletion,omitempty"`
}

// checkOwners adds a cause for each rule that the ownerReferences of d break.
func checkOwners(d *parts, c *causes) {
	m := findMember(d.metadata, "ownerReferences")
	var owners []ownerReference
	if m == nil || json.Unmarshal(m.Value, &owners) != nil {
		return // readMetadata has checked the types
	}
	const field = "metadata.ownerReferences"
	controller := "" // the kind and name of the first one
	for i, o := range owners {
		o.check(fmt.Sprintf("%s[%d]", field, i), c)
		if o.Controller == nil || !*o.Controller {
			continue
		}
		name := o.Kind + "/" + o.Name
		if controller != "" {
			value, _ := json.Marshal(owners) // strings and booleans
			c.add(listwatch.CauseInvalid, field, "Invalid value: %s: Only one reference can have Controller set to true. "+
				`Found "true" in references for %s and %s`, value, controller, name)
			continue
		}
		controller = name
	}
}

// check adds a cause for each rule that o, the value of a field, breaks.
func (o ownerReference) check(field string, c *causes) {
	group, version, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped {
		group, version = "", group
	}
	if o.APIVersion != "" && (version == "" || strings.Contains(version, "/")) {
		c.add(listwatch.CauseInvalid, field+".apiVersion",
			"Invalid value: %q: must be <group>/<version> or <version>", o.APIVersion)
	}
	for _, m := range []struct{ name, value string }{
		{"apiVersion", o.APIVersion}, {"kind", o.Kind}, {"name", o.Name}, {"uid", o.UID},
	} {
		if m.value == "" {
			c.add(listwatch.CauseRequired, field+"."+m.name, "Required value: must not be empty")
		}
	}
	// Kubernetes deletes Events after a while, so an Event must not own an object.
	if group == "" && version == "v1" && o.Kind == "Event" {
		value, _ := json.Marshal(o) // strings and booleans
		c.add(listwatch.CauseInvalid, field, "Invalid value: %s: /v1, Kind=Event is disallowed from being an owner", value)
	}
}
