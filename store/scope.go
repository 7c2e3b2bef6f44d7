package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/listwatch/listwatch"
)

// A Scope is a part of a collection, such as the objects of one tenant. The zero Scope is the whole
// collection.
type Scope struct {
	// Namespace is the namespace of the objects. If empty, objects of all namespaces are included.
	Namespace string
	// Labels and Fields select the objects. Build them with [listwatch.LabelEquals] or
	// [listwatch.FieldEquals], which do not parse the value. The zero values select everything.
	Labels listwatch.LabelSelector
	Fields listwatch.FieldSelector
}

// CheckUnchanged returns nil if now, the present scope of a user whose scope was s, is written the
// same way as s. Otherwise the error has code Expired, so that a client whose watch ends with it
// lists the objects of the new scope.
func (s Scope) CheckUnchanged(now Scope) error {
	if s.Namespace == now.Namespace && s.Labels.String() == now.Labels.String() &&
		s.Fields.String() == now.Fields.String() {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Expired, Message: "the objects that exist for the user have changed; list again",
	}
}

// matches reports whether o is in s.
func (s Scope) matches(o *listwatch.Object) bool {
	return (s.Namespace == "" || s.Namespace == o.Key.Namespace) && s.Labels.Matches(o.Labels) && s.Fields.Matches(o)
}

// epoch returns the epoch of the objects in s. epoch is the epoch of the collection.
func (s Scope) epoch(epoch string) string {
	if s.Namespace == "" && s.Labels.Empty() && s.Fields.Empty() {
		return epoch
	}
	sum := sha256.Sum256([]byte(s.Namespace + "\x00" + s.Labels.String() + "\x00" + s.Fields.String()))
	return epoch + "." + hex.EncodeToString(sum[:8])
}

// Within returns a view of c that has only the objects of s. If c is itself a view, the new view
// has only the objects that both permit. A watch reports an object that leaves s as deleted. Reads
// and writes of a single object behave as if the objects outside of s did not exist, except that a
// create fails with AlreadyExists if an object outside of s has the same name. A create or an
// update whose result would be outside of s is refused with code Forbidden, and so is any request
// for a namespace other than the namespace of s.
//
// The view has an epoch of its own. Stats and Quota describe the whole collection.
func (c *Collection) Within(s Scope) *Collection {
	view := *c
	switch outer := &view.scope; {
	case outer.Namespace == "":
		outer.Namespace = s.Namespace
	case s.Namespace != "":
		s.Fields = s.Fields.And(listwatch.FieldEquals(listwatch.FieldNamespace, s.Namespace))
	}
	view.scope.Labels, view.scope.Fields = view.scope.Labels.And(s.Labels), view.scope.Fields.And(s.Fields)
	return &view
}

// narrow restricts q to the scope of c.
func (c *Collection) narrow(q listwatch.Query) (listwatch.Query, error) {
	if q.Namespace == "" {
		q.Namespace = c.scope.Namespace
	}
	q.Labels, q.Fields = q.Labels.And(c.scope.Labels), q.Fields.And(c.scope.Fields)
	return q, c.checkScope(q.Namespace)
}

// checkScope returns an error if a request that names the namespace can only concern objects
// outside of the scope of c, or if the scope selects by a field that the objects of c do not have.
func (c *Collection) checkScope(namespace string) error {
	if err := c.scope.Fields.Check(c.spec.Fields); err != nil {
		return err
	}
	if c.scope.Namespace == "" || namespace == c.scope.Namespace {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Forbidden,
		Message: fmt.Sprintf("%s is forbidden: the request is restricted to the namespace %q, and names %q",
			c.spec.QualifiedName(), c.scope.Namespace, namespace),
		Details: c.spec.details(""),
	}
}

// checkDraft returns an error if d, which may be nil, would be an object outside of the scope of c.
func (c *Collection) checkDraft(d *Draft) error {
	if d == nil || c.scope.matches(&listwatch.Object{Key: d.Key, Labels: d.Labels, Fields: d.Fields}) {
		return nil
	}
	want := c.scope.Labels.String()
	if fields := c.scope.Fields.String(); fields != "" {
		want += " " + fields
	}
	return &listwatch.Error{
		Code: listwatch.Forbidden,
		Message: fmt.Sprintf("%s is forbidden: the object would not match %q, to which the request is restricted",
			c.spec.quotedName(d.Key.Name), want),
		Details: c.spec.details(d.Key.Name),
	}
}
