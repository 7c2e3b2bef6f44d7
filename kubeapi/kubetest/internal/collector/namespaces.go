package collector

import (
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/store"
)

// emptyNamespace deletes all objects in the namespace with the metadata m, and then the namespace.
// If finalizers delay the deletion of an object, it is called again when the object is gone.
func (c *Collector) emptyNamespace(from *store.Collection, m *listwatch.Metadata) error {
	if !slices.Contains(m.Finalizers, rules.NamespaceFinalizer) {
		return nil
	}
	_, err := from.Update(c.ctx, m.Key(), listwatch.Preconditions{UID: m.UID},
		func(old *listwatch.Object) ([]byte, error) {
			return rawjson.Merge(old.Data, []byte(`{"status":{"phase":"Terminating"}}`))
		})
	if err != nil {
		return ignoreGone(err)
	}
	remaining := false
	for _, r := range c.Resources.All() {
		if !r.Namespaced {
			continue
		}
		remain, err := c.DeleteAll(r, m.Name)
		if err != nil {
			return err
		}
		remaining = remaining || remain
	}
	if remaining {
		return nil
	}
	return c.dropFinalizer(from, m, rules.NamespaceFinalizer)
}

// DeleteAll deletes all objects of r in a namespace, or in all namespaces if namespace is empty. It
// reports whether objects remain, because of their finalizers.
func (c *Collector) DeleteAll(r Resource, namespace string) (remain bool, err error) {
	page, err := r.Source.List(c.ctx, listwatch.Query{Namespace: namespace})
	if err != nil {
		return false, err
	}
	for _, o := range page.Items {
		last, err := r.Collection.Delete(c.ctx, o.Key, listwatch.Preconditions{})
		if err := ignoreGone(err); err != nil {
			return false, err
		}
		remain = remain || err == nil && rules.IsBeingDeleted(last.Data)
	}
	return remain, nil
}
