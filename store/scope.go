package store

import (
	"cmp"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/digest"
)

// Within returns a view of c that has only the objects of s. If c is itself a view, the new view
// has only the objects that both permit. A watch reports an object that leaves s as deleted. Reads
// and writes of a single object behave as if the objects outside of s did not exist, except that a
// create fails with AlreadyExists if an object outside of s has the same name. A create or an
// update whose result would be outside of s is refused with code Forbidden, and so is any request
// for a namespace other than the namespace of s.
//
// Writes need whole objects, so s must have no projection. Otherwise each use of the view fails
// with code Invalid, as with a field that the objects do not have.
//
// The view has an epoch of its own. Stats and Quota describe the whole collection.
func (c *Collection) Within(s listwatch.Selection) *Collection {
	view := *c
	view.scope = c.scope.And(s)
	return &view
}

// epoch returns the epoch of the objects in the scope of c. epoch is the epoch of the database.
func (c *Collection) epoch(epoch string) string {
	if key := c.scope.Key(); key != "" {
		return epoch + "." + digest.Of(key)
	}
	return epoch
}

// narrow restricts q to the scope of c.
func (c *Collection) narrow(q listwatch.Query) (listwatch.Query, error) {
	err := c.checkScope(cmp.Or(q.Namespace, c.scope.Namespace))
	q.Selection = c.scope.And(q.Selection)
	return q, err
}

// checkScope returns an error if a request that names the namespace can only concern objects
// outside of the scope of c, or if the scope selects by a field that the objects of c do not have
// or has a projection.
func (c *Collection) checkScope(namespace string) error {
	if err := c.scope.Fields.Check(c.spec.Fields); err != nil {
		return err
	}
	if p := c.scope.Projection; !p.Empty() {
		return badRequest("%s: a scope must have no projection, got %q", c.spec.QualifiedName(), p)
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
	if d == nil || c.scope.Matches(&listwatch.Object{Key: d.Key, Labels: d.Labels, Fields: d.Fields}) {
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
