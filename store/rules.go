package store

import (
	"fmt"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// annotationBytes is how long the names and values of all annotations of an object may be together, as in Kubernetes.
const annotationBytes = 256 << 10

// causeTooLong is the reason of a cause that complains about a size, as Kubernetes spells it (metav1.CauseType).
const causeTooLong = "FieldValueTooLong"

// complaints are the rules that an object breaks.
type complaints []listwatch.Cause

func (c *complaints) add(reason, field, format string, args ...any) {
	*c = append(*c, listwatch.Cause{Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)})
}

// complaints returns all rules that d breaks.
func (r CollectionSpec) complaints(d *draft) []listwatch.Cause {
	var c complaints
	r.checkNames(d, &c)
	if err := listwatch.CheckLabels(d.labels); err != nil {
		for _, cause := range listwatch.AsError(err).Details.Causes {
			c.add(cause.Reason, cause.Field, "Invalid value: %s", cause.Message)
		}
	}
	checkAnnotations(d.doc, &c)
	for _, name := range d.finalizers {
		checkQualified("metadata.finalizers", "finalizer", name, &c)
	}
	checkOwners(d.doc, &c)
	return c
}

func (r CollectionSpec) checkNames(d *draft, c *complaints) {
	switch {
	case d.key.Name == "" && d.generateName == "":
		c.add(listwatch.CauseRequired, "metadata.name", "Required value: name or generateName is required")
	case d.key.Name == "":
		if err := r.checkName(withSuffix(d.generateName, "xxxxx")); err != nil {
			c.add(listwatch.CauseInvalid, "metadata.generateName", "Invalid value: %s", words(err))
		}
	default:
		if err := r.checkName(d.key.Name); err != nil {
			c.add(listwatch.CauseInvalid, "metadata.name", "Invalid value: %s", words(err))
		}
	}
	switch {
	case r.Namespaced && d.key.Namespace == "":
		c.add(listwatch.CauseRequired, "metadata.namespace", "Required value")
	case !r.Namespaced && d.key.Namespace != "":
		c.add(listwatch.CauseForbidden, "metadata.namespace", "Forbidden: not allowed on this type")
	case r.Namespaced:
		if err := listwatch.CheckNamespace(d.key.Namespace); err != nil {
			c.add(listwatch.CauseInvalid, "metadata.namespace", "Invalid value: %s", words(err))
		}
	}
}

// checkName demands of every name that it can be one segment of a path, and then what r demands.
func (r CollectionSpec) checkName(name string) error {
	if name == "." || name == ".." || strings.ContainsAny(name, "/%") {
		return badRequest("name %q: want one segment of a path: neither '.' nor '..', and without '/' and '%%'", name)
	}
	return r.CheckName(name)
}

// words is the text of err without its code.
func words(err error) string {
	if e := listwatch.AsError(err); e.Message != "" {
		return e.Message
	}
	return err.Error()
}

// checkAnnotations checks the names, which may have capitals in their prefix, and the size.
func checkAnnotations(d *document, c *complaints) {
	const field = "metadata.annotations"
	m := find(d.meta, "annotations")
	if m == nil || isNull(m.Value) {
		return
	}
	size := 0
	_ = rawjson.Members(m.Value, func(name string, value rawjson.Span) error { // its type has been checked
		checkQualified(field, "annotation", name, c)
		text, _ := rawjson.String(value.Of(m.Value))
		size += len(name) + len(text)
		return nil
	})
	if size > annotationBytes {
		c.add(causeTooLong, field, "Too long: may not be more than %d bytes", annotationBytes)
	}
}

// checkQualified demands of a name what labels demand of theirs; in the prefix there may be capitals.
func checkQualified(field, what, name string, c *complaints) {
	prefix, rest, found := strings.Cut(name, "/")
	if found {
		rest = strings.ToLower(prefix) + "/" + rest
	} else {
		rest = name
	}
	if err := listwatch.CheckLabels(map[string]string{rest: ""}); err != nil {
		why := strings.TrimPrefix(listwatch.AsError(err).Details.Causes[0].Message, fmt.Sprintf("label key %q: ", rest))
		c.add(listwatch.CauseInvalid, field, "Invalid value: %s %q: %s", what, name, why)
	}
}

// checkOwners demands of each owner all that tells it from others, and that one at most controls the object.
func checkOwners(d *document, c *complaints) {
	m := find(d.meta, "ownerReferences")
	if m == nil || isNull(m.Value) {
		return
	}
	controllers, i := 0, 0
	_ = rawjson.Elements(m.Value, func(at rawjson.Span) error { // its type has been checked
		owner := at.Of(m.Value)
		for _, name := range []string{"apiVersion", "kind", "name", "uid"} {
			if text, _ := rawjson.String(rawjson.Lookup(owner, name)); text == "" {
				c.add(listwatch.CauseRequired, fmt.Sprintf("metadata.ownerReferences[%d].%s", i, name), "Required value: must not be empty")
			}
		}
		if string(rawjson.Lookup(owner, "controller")) == "true" {
			controllers++
		}
		i++
		return nil
	})
	if controllers > 1 {
		c.add(listwatch.CauseInvalid, "metadata.ownerReferences", "Invalid value: only one reference can have controller set to true, %d have", controllers)
	}
}
