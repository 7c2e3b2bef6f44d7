package collector

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// collect deletes the object with the metadata m if all its owners are gone or wait for the
// deletion of their dependents. If only some of the owners are, it removes the references to these.
// If the kind of an owner is unknown, it does nothing (Kubernetes, "Garbage Collection").
func (c *Collector) collect(s Resource, m *listwatch.Metadata) error {
	r := reference{s.QualifiedName(), m.Key()}
	_, due := c.attempts.due[r]
	var gone []string // the UIDs of owners that do not keep the object
	waiting := false
	for _, o := range m.OwnerReferences {
		state, err := c.owner(o, m.Namespace)
		switch {
		case err != nil:
			return err
		case state == ownerUnknown:
			return nil
		case state != ownerExists:
			gone = append(gone, o.UID)
		}
		waiting = waiting || state == ownerWaits
		due = due || state == ownerGone
	}
	if !due {
		return nil
	}
	delete(c.attempts.due, r)
	switch {
	case len(gone) == 0:
		return nil
	case len(gone) < len(m.OwnerReferences):
		return ignoreGone(c.changeOwners(s, m, func(o *metav1.OwnerReference) (keep bool) {
			return !slices.Contains(gone, string(o.UID))
		}))
	}
	var options metav1.DeleteOptions
	switch {
	case waiting && len(c.dependents[m.UID]) > 0:
		if broke, err := c.breakCircle(s, m); err != nil || broke {
			c.attempt(r) // try again after the write
			return ignoreGone(err)
		}
		options.PropagationPolicy = new(metav1.DeletePropagationForeground)
	case slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents):
		options.PropagationPolicy = new(metav1.DeletePropagationOrphan)
	case slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents):
		options.PropagationPolicy = new(metav1.DeletePropagationForeground)
	default:
		options.PropagationPolicy = new(metav1.DeletePropagationBackground)
	}
	c.pace.pause(c.worker.ctx, r, gone[0])
	p := listwatch.Preconditions{UID: m.UID, Version: m.Version()}
	_, _, err := s.Delete(c.worker.ctx, s.Collection, m.Key(), p, options)
	if errors.Is(err, listwatch.Conflict) {
		c.attempt(r) // try again after the other write
		return nil
	}
	return ignoreGone(err)
}

// breakCircle makes the owners of m no longer wait for m if a dependent of m waits for its own
// dependents. Otherwise, they would wait forever if m is one of these dependents. broke reports
// whether it has changed m.
func (c *Collector) breakCircle(s Resource, m *listwatch.Metadata) (broke bool, err error) {
	blocks := func(o listwatch.OwnerReference) bool { return o.BlockOwnerDeletion }
	if !slices.ContainsFunc(m.OwnerReferences, blocks) {
		return false, nil
	}
	for r := range c.dependents[m.UID] {
		if d := c.known[r]; waitsForDependents(&d) {
			return true, c.changeOwners(s, m, func(o *metav1.OwnerReference) (keep bool) {
				if o.BlockOwnerDeletion != nil {
					*o.BlockOwnerDeletion = false
				}
				return true
			})
		}
	}
	return false, nil
}

// An ownerState is the state of an owner that an object refers to.
type ownerState int

const (
	ownerGone ownerState = iota
	ownerExists
	ownerWaits // for the deletion of its dependents
	// ownerUnknown means that there is no such kind or version, or that the owner would be in a
	// namespace and the dependent is not.
	ownerUnknown
)

// owner returns the state of the owner o of an object in the namespace.
func (c *Collector) owner(o listwatch.OwnerReference, namespace string) (ownerState, error) {
	s, found := c.ownerResource(o)
	collection, isGone := c.gone[o.UID]
	switch {
	case !found && isGone && c.kinds[o.APIVersion+"/"+o.Kind] == collection:
		return ownerGone, nil
	case !found || s.Namespaced && namespace == "":
		return ownerUnknown, nil
	}
	if _, version := splitVersion(o.APIVersion); !slices.Contains(s.Versions, version) {
		return ownerUnknown, nil
	}
	m, err := metadataOf(c.worker.ctx, s.Collection, s.ownerReference(o, namespace).key)
	switch {
	case err != nil || m == nil || m.UID != o.UID:
		return ownerGone, err
	case waitsForDependents(m):
		return ownerWaits, nil
	}
	return ownerExists, nil
}

// waitsForDependents reports whether an object is being deleted in the foreground.
func waitsForDependents(m *listwatch.Metadata) bool {
	return m.DeletionTimestamp != nil && slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents)
}

// changeOwners calls change for each owner reference of an object, and removes those for which it
// returns false.
func (c *Collector) changeOwners(
	from Resource, m *listwatch.Metadata, change func(*metav1.OwnerReference) (keep bool),
) error {
	return c.update(from, m, func(object []byte) ([]byte, error) {
		owners := rawjson.Lookup(object, "metadata", "ownerReferences")
		if owners == nil {
			return object, nil
		}
		kept := []metav1.OwnerReference{}
		if err := json.Unmarshal(owners, &kept); err != nil {
			return nil, err
		}
		kept = slices.DeleteFunc(kept, func(o metav1.OwnerReference) bool { return !change(&o) })
		value, err := json.Marshal(kept)
		return jsonvalue.SetMetadata(object, "ownerReferences", value), err
	})
}

// propagate carries out the propagation policy of an object that is being deleted.
func (c *Collector) propagate(from Resource, m *listwatch.Metadata) error {
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
	_, begun := c.attempts.begun[m.UID]
	for r := range c.dependents[m.UID] {
		d := c.known[r]
		blocks := slices.ContainsFunc(d.OwnerReferences, func(o listwatch.OwnerReference) bool {
			return o.UID == m.UID && o.BlockOwnerDeletion
		})
		blocked = blocked || blocks
		if d.DeletionTimestamp != nil || begun && !blocks {
			continue
		}
		c.attempt(r)
		if blocks {
			continue
		}
		// Collect it at once, because it would keep its owner once that no longer waits.
		if err := c.act(r); err != nil {
			return err
		}
	}
	c.attempts.begun[m.UID] = struct{}{}
	if blocked {
		return nil // the deletion of each dependent queues the owner again
	}
	return c.dropFinalizer(from, m, metav1.FinalizerDeleteDependents)
}

// orphan removes the reference to the owner with the given UID from the object r.
func (c *Collector) orphan(r reference, uid string) error {
	s, found := c.Resources.Named(r.collection)
	if !found {
		return nil
	}
	d := c.known[r]
	return ignoreGone(c.changeOwners(s, &d, func(o *metav1.OwnerReference) (keep bool) {
		return string(o.UID) != uid
	}))
}

// dropFinalizer removes a finalizer from the object with the metadata m.
func (c *Collector) dropFinalizer(from Resource, m *listwatch.Metadata, name string) error {
	return ignoreGone(c.update(from, m, func(object []byte) ([]byte, error) {
		return rules.WithoutFinalizer(object, name)
	}))
}

// update changes the object with the metadata m.
func (c *Collector) update(
	from Resource, m *listwatch.Metadata, change func(object []byte) ([]byte, error),
) error {
	_, err := from.Collection.Update(c.worker.ctx, m.Key(), listwatch.Preconditions{UID: m.UID},
		func(old *listwatch.Object) ([]byte, error) {
			next, err := change(old.Data)
			if err != nil {
				return nil, err
			}
			return from.Track(old.Data, next)
		})
	return err
}

// ignoreGone returns nil if err means that the object no longer exists.
func ignoreGone(err error) error {
	if errors.Is(err, listwatch.NotFound) {
		return nil
	}
	return err
}
