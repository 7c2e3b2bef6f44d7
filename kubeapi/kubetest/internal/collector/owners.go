package collector

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// collect deletes the object with the metadata m if all its owners are gone. If only some are, it
// removes their references (Kubernetes, "Garbage Collection").
func (c *Collector) collect(s Resource, m *listwatch.Metadata) error {
	var remaining []listwatch.OwnerReference
	waiting := false
	for _, o := range m.OwnerReferences {
		exists, waits, err := c.owner(o, m.Namespace)
		if err != nil {
			return err
		}
		if exists && !waits {
			remaining = append(remaining, o)
		}
		waiting = waiting || waits
	}
	switch {
	case len(remaining) == len(m.OwnerReferences):
		return nil
	case len(remaining) == 0:
		_, err := s.Collection.Delete(c.ctx, m.Key(), listwatch.Preconditions{UID: m.UID, Version: m.Version()})
		return ignoreGone(err)
	case waiting && len(c.dependents[m.UID]) > 0:
		return nil // it keeps an owner, and its references are removed when the other owner is gone
	}
	return ignoreGone(c.setOwners(s.Collection, m, func(o listwatch.OwnerReference) bool {
		return slices.Contains(remaining, o)
	}))
}

// owner reports whether the owner o of an object in the namespace exists, and whether it waits for
// the deletion of its dependents. An owner of an unknown kind exists.
func (c *Collector) owner(o listwatch.OwnerReference, namespace string) (exists, waits bool, err error) {
	s, found := c.ownerResource(o)
	if !found || s.Namespaced && namespace == "" {
		return true, false, nil
	}
	m, err := metadataOf(c.ctx, s.Collection, s.ownerReference(o, namespace).key)
	if err != nil || m == nil || m.UID != o.UID {
		return false, false, err
	}
	return true, m.DeletionTimestamp != nil && slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents), nil
}

// setOwners removes the owner references for which keep returns false.
func (c *Collector) setOwners(
	from *store.Collection, m *listwatch.Metadata, keep func(listwatch.OwnerReference) bool,
) error {
	_, err := from.Update(c.ctx, m.Key(), listwatch.Preconditions{UID: m.UID},
		func(old *listwatch.Object) ([]byte, error) {
			now, err := rules.Metadata(old.Data)
			if err != nil {
				return nil, err
			}
			kept := slices.DeleteFunc(now.OwnerReferences, func(o listwatch.OwnerReference) bool { return !keep(o) })
			value, err := json.Marshal(kept)
			return jsonvalue.SetMetadata(old.Data, "ownerReferences", value), err
		})
	return err
}

// propagate carries out the propagation policy of an object that is being deleted.
func (c *Collector) propagate(from *store.Collection, m *listwatch.Metadata) error {
	if slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents) {
		for r := range c.dependents[m.UID] {
			if err := c.orphan(r, m.UID); err != nil {
				return err
			}
		}
		return c.dropFinalizer(from, m, metav1.FinalizerOrphanDependents)
	}
	if !slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents) {
		return nil
	}
	blocked := false
	for r := range c.dependents[m.UID] {
		d := c.known[r]
		blocked = blocked || slices.ContainsFunc(d.OwnerReferences, func(o listwatch.OwnerReference) bool {
			return o.UID == m.UID && o.BlockOwnerDeletion
		})
		if d.DeletionTimestamp == nil {
			c.queue.Add(r) // collect deletes it
		}
	}
	if blocked {
		return nil // the deletion of each dependent queues the owner again
	}
	return c.dropFinalizer(from, m, metav1.FinalizerDeleteDependents)
}

// orphan removes the reference to the owner with the given UID from the object r.
func (c *Collector) orphan(r reference, uid string) error {
	s, found := c.named(r.collection)
	if !found {
		return nil
	}
	d := c.known[r]
	return ignoreGone(c.setOwners(s.Collection, &d, func(o listwatch.OwnerReference) bool { return o.UID != uid }))
}

// dropFinalizer removes a finalizer from the object with the metadata m.
func (c *Collector) dropFinalizer(from *store.Collection, m *listwatch.Metadata, name string) error {
	_, err := from.Update(c.ctx, m.Key(), listwatch.Preconditions{UID: m.UID},
		func(old *listwatch.Object) ([]byte, error) {
			now, err := rules.Metadata(old.Data)
			if err != nil {
				return nil, err
			}
			value, err := json.Marshal(slices.DeleteFunc(now.Finalizers, func(f string) bool { return f == name }))
			return jsonvalue.SetMetadata(old.Data, "finalizers", value), err
		})
	return ignoreGone(err)
}

// ignoreGone returns nil if err means that the object no longer exists.
func ignoreGone(err error) error {
	if errors.Is(err, listwatch.NotFound) {
		return nil
	}
	return err
}
