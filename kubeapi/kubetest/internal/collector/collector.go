// Package collector follows the writes to all collections of a cluster. It collects the dependents
// of deleted owners and empties deleted namespaces.
package collector

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/admission"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/workqueue"
)

// namespaces, pods and definitions are the qualified names of collections.
var (
	namespaces  = "namespaces"
	pods        = "pods"
	definitions = rules.Definitions.QualifiedName()
)

// A Resource is a resource with its objects.
type Resource struct {
	kubeapi.Resource
	Collection *store.Collection
	// Source lists the objects even if lists of Collection fail.
	Source listwatch.Source
	// Versions are the versions in which a cluster serves the objects.
	Versions []string
	// Track updates the managedFields of an object that a controller writes; see
	// [kubeapi.Resource.Tracker].
	Track func(old, next []byte) ([]byte, error)
}

// Resources are the resources of a cluster. The methods are called concurrently.
type Resources interface {
	// Named returns the resource with the given qualified name.
	Named(name string) (Resource, bool)
	// Find returns the first resource for which is returns true.
	Find(is func(Resource) bool) (Resource, bool)
	// All returns all resources.
	All() []Resource
}

// A Collector does its work with one goroutine, from Start until Stop. Its fields must not be
// changed after Start.
type Collector struct {
	Resources Resources
	// Owners enables the collection of dependents, and Namespaces the emptying of namespaces.
	Owners, Namespaces bool

	queue  workqueue.Queue[reference] // the objects that have changed
	worker worker

	// Owned by the worker.
	known      map[reference]listwatch.Metadata
	dependents map[string]map[reference]struct{} // by the UID of the owner
	gone       map[string]string                 // the collections of deleted owners, by UID
	kinds      map[string]string                 // the collections of the kinds of owners
	noted      map[reference]error               // the changes that were noted, but not acted on
	attempts   attempts
	pace       pace
}

// attempts records the objects to collect as soon as their owners allow it. An object that gets an
// owner in foreground deletion is not collected for that reason alone, as in Kubernetes: the owner
// must wait for this object, too, or another owner must be gone.
type attempts struct {
	due   map[reference]struct{} // the objects
	begun map[string]struct{}    // the UIDs of the owners whose dependents were collected
}

// A worker is the goroutine of a Collector.
type worker struct {
	ctx    context.Context // ends at stop, because the goroutine outlives Start
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func (w *worker) start(run func()) {
	w.ctx, w.cancel = context.WithCancel(admission.WithUser(context.Background(),
		"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccounts",
		"system:serviceaccounts:kube-system", "system:authenticated"))
	w.ended.Go(run) // ends when stop cancels the context
}

func (w *worker) stop() {
	w.cancel()
	w.ended.Wait()
}

// A reference names an object.
type reference struct {
	collection string // the qualified name
	key        listwatch.Key
}

// Changed notes that the object at key of a collection was written.
func (c *Collector) Changed(collection string, key listwatch.Key) {
	c.queue.Add(reference{collection, key})
}

// Start starts the goroutine.
func (c *Collector) Start() {
	c.known, c.dependents = map[reference]listwatch.Metadata{}, map[string]map[reference]struct{}{}
	c.gone, c.kinds = map[string]string{}, map[string]string{}
	c.noted = map[reference]error{}
	c.attempts = attempts{map[reference]struct{}{}, map[string]struct{}{}}
	c.worker.start(c.run)
}

// Stop ends the goroutine and waits for its end.
func (c *Collector) Stop() {
	c.worker.stop()
}

// run notes all changes before it acts on any of them. Otherwise it might apply a policy to an
// owner whose dependents it does not know yet.
func (c *Collector) run() {
	for {
		r, err := c.queue.Get(c.worker.ctx)
		if err != nil {
			return
		}
		c.noted[r] = c.note(r)
		c.queue.Done(r)
		if c.queue.Len() > 0 {
			continue
		}
		for r, err := range c.noted {
			delete(c.noted, r)
			if err == nil {
				err = c.act(r)
			}
			if err != nil {
				c.queue.AddRateLimited(r, 0)
			} else {
				c.queue.Forget(r)
			}
		}
	}
}

// note reads the present metadata of the object r.
func (c *Collector) note(r reference) error {
	s, ok := c.Resources.Named(r.collection)
	if !ok {
		c.index(r, nil) // the objects of a definition are gone with it
		return nil
	}
	m, err := metadataOf(c.worker.ctx, s.Collection, r.key)
	if err == nil {
		c.index(r, m)
	}
	return err
}

// act does what the present state of the object r requires.
func (c *Collector) act(r reference) error {
	s, ok := c.Resources.Named(r.collection)
	if !ok {
		return nil
	}
	m, err := metadataOf(c.worker.ctx, s.Collection, r.key)
	if err != nil || m == nil {
		return err
	}
	isDeleted := m.DeletionTimestamp != nil
	if isDeleted && c.Namespaces && r.collection == namespaces {
		if err := c.emptyNamespace(s, m); err != nil {
			return err
		}
	}
	if isDeleted && r.collection == definitions {
		if err := c.emptyDefinition(s, m); err != nil {
			return err
		}
	}
	switch {
	case !c.Owners:
		return nil
	case isDeleted:
		return c.propagate(s, m)
	}
	return c.collect(s, m)
}

// attempt queues r in order to collect it.
func (c *Collector) attempt(r reference) {
	c.attempts.due[r] = struct{}{}
	c.queue.Add(r)
}

// metadataOf returns the metadata of an object, or nil if the object does not exist.
func metadataOf(ctx context.Context, c *store.Collection, key listwatch.Key) (*listwatch.Metadata, error) {
	o, err := c.Get(ctx, key)
	switch {
	case errors.Is(err, listwatch.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return rules.Metadata(o.Data)
}

// index notes the present metadata of r, which is nil if the object no longer exists, and queues
// the objects that the change concerns.
func (c *Collector) index(r reference, now *listwatch.Metadata) {
	before, existed := c.known[r]
	for _, owner := range before.OwnerReferences {
		delete(c.dependents[owner.UID], r)
		if now != nil && slices.Contains(now.OwnerReferences, owner) {
			continue
		}
		if s, found := c.ownerResource(owner); found { // it may wait for r
			c.queue.Add(s.ownerReference(owner, r.key.Namespace))
		}
	}
	delete(c.known, r)
	if existed && (now == nil || now.UID != before.UID) {
		if len(c.dependents[before.UID]) > 0 {
			c.gone[before.UID] = r.collection
		}
		for dependent := range c.dependents[before.UID] {
			c.attempt(dependent)
		}
		delete(c.attempts.begun, before.UID)
	}
	definition := reference{definitions, listwatch.Key{Name: r.collection}}
	if c.known[definition].DeletionTimestamp != nil {
		c.queue.Add(definition)
	}
	namespace := reference{namespaces, listwatch.Key{Name: r.key.Namespace}}
	if r.key.Namespace != "" && c.known[namespace].DeletionTimestamp != nil {
		c.queue.Add(namespace)
	}
	if now == nil {
		delete(c.attempts.due, r)
		return
	}
	c.known[r] = *now
	for _, owner := range now.OwnerReferences {
		_, _ = c.ownerResource(owner) // the kind may be removed before the owner
		if c.dependents[owner.UID] == nil {
			c.dependents[owner.UID] = map[reference]struct{}{}
		}
		c.dependents[owner.UID][r] = struct{}{}
	}
}

// ownerResource returns the resource of the owner that o names.
func (c *Collector) ownerResource(o listwatch.OwnerReference) (Resource, bool) {
	group, _ := splitVersion(o.APIVersion)
	r, found := c.Resources.Find(func(r Resource) bool { return r.Group == group && r.Kind == o.Kind })
	if found {
		c.kinds[o.APIVersion+"/"+o.Kind] = r.QualifiedName()
	}
	return r, found
}

// splitVersion splits an apiVersion into the group and the version.
func splitVersion(apiVersion string) (group, version string) {
	if i := strings.LastIndexByte(apiVersion, '/'); i >= 0 {
		return apiVersion[:i], apiVersion[i+1:]
	}
	return "", apiVersion
}

// ownerReference returns the reference to the owner o of an object in the given namespace.
func (r Resource) ownerReference(o listwatch.OwnerReference, namespace string) reference {
	key := listwatch.Key{Name: o.Name}
	if r.Namespaced {
		key.Namespace = namespace
	}
	return reference{r.QualifiedName(), key}
}
