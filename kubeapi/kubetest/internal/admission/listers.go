package admission

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	admissioninformers "k8s.io/client-go/informers/admissionregistration"
	registration "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// The plugins of Kubernetes find configurations and namespaces through informers and listers. The
// types in this file implement the methods that they call, from the stores of the Env. So a change
// has its effect at once, and no goroutine is needed. All other methods panic.

// A set holds the objects of a kind of configuration. It is an informer and a lister.
type set[T any] struct {
	cache.SharedIndexInformer

	mu sync.Mutex
	// Guarded by mu.
	objects map[string]versioned[T]
	handler cache.ResourceEventHandler // nil until a plugin adds it
}

// A versioned is an object after a write. It is nil after a delete.
type versioned[T any] struct {
	version listwatch.Version
	object  *T
}

// changed notes that an object was written, or deleted. It may be called in another order than that
// of the writes. The plugins see the object as adapt changes it.
func (s *set[T]) changed(o *listwatch.Object, deleted bool, adapt ...func(*T)) error {
	next := new(T)
	if err := json.Unmarshal(o.Data, next); err != nil {
		return err
	}
	for _, a := range adapt {
		a(next)
	}
	handler := s.store(o, deleted, next)
	switch {
	case handler == nil:
	case deleted:
		handler.OnDelete(next)
	default:
		handler.OnUpdate(next, next)
	}
	return nil
}

// store stores an object, and returns the handler for it. It returns nil if there is none, or if
// the set already has a newer version.
func (s *set[T]) store(o *listwatch.Object, deleted bool, next *T) cache.ResourceEventHandler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[o.Key.Name].version > o.Version {
		return nil
	}
	if s.objects == nil {
		s.objects = map[string]versioned[T]{}
	}
	if deleted {
		next = nil
	}
	s.objects[o.Key.Name] = versioned[T]{o.Version, next}
	return s.handler
}

// all returns the objects, ordered by name.
func (s *set[T]) all() []*T {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*T, 0, len(s.objects))
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[name].object; o != nil {
			all = append(all, o)
		}
	}
	return all
}

func (s *set[T]) List(labels.Selector) ([]*T, error) { return s.all(), nil }

func (s *set[T]) Get(name string) (*T, error) { panic("not used") }

func (s *set[T]) HasSynced() bool { return true }

func (s *set[T]) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = h
	return synced{}, nil
}

// synced is the registration of a handler that has seen all objects.
type synced struct {
	cache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// A factory makes the informers of the plugins.
type factory struct {
	informers.SharedInformerFactory
	c *Chain
}

func (f factory) Admissionregistration() admissioninformers.Interface { return admissionGroup{c: f.c} }

// namespaces is a lister of namespaces.
type namespaces struct {
	corelisters.NamespaceLister
	c *Chain
}

func (n namespaces) Get(name string) (*corev1.Namespace, error) {
	o, err := n.c.Cluster.Get("namespaces", listwatch.Key{Name: name})
	if err != nil {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	ns := new(corev1.Namespace)
	return ns, json.Unmarshal(o.Data, ns)
}

type admissionGroup struct {
	admissioninformers.Interface
	c *Chain
}

func (g admissionGroup) V1() registration.Interface { return admissionV1{c: g.c} }

type admissionV1 struct {
	registration.Interface
	c *Chain
}

func (v admissionV1) ValidatingWebhookConfigurations() registration.TypedValidatingWebhookConfigurationInformer {
	return validatingInformer{s: &v.c.validating}
}

func (v admissionV1) MutatingWebhookConfigurations() registration.TypedMutatingWebhookConfigurationInformer {
	return mutatingInformer{s: &v.c.mutating}
}

type validatingInformer struct {
	registration.TypedValidatingWebhookConfigurationInformer
	s *validatingSet
}

func (i validatingInformer) Informer() cache.SharedIndexInformer { return i.s }

func (i validatingInformer) Lister() admissionlisters.ValidatingWebhookConfigurationLister {
	return i.s
}

type mutatingInformer struct {
	registration.TypedMutatingWebhookConfigurationInformer
	s *mutatingSet
}

func (i mutatingInformer) Informer() cache.SharedIndexInformer { return i.s }

func (i mutatingInformer) Lister() admissionlisters.MutatingWebhookConfigurationLister { return i.s }

// A client is the client that the plugins use for namespaces that their lister does not have.
type client struct {
	kubernetes.Interface
	c *Chain
}

func (c client) CoreV1() typedcorev1.CoreV1Interface { return coreClient{c: c.c} }

type coreClient struct {
	typedcorev1.CoreV1Interface
	c *Chain
}

func (c coreClient) Namespaces() typedcorev1.NamespaceInterface { return namespaceClient{c: c.c} }

type namespaceClient struct {
	typedcorev1.NamespaceInterface
	c *Chain
}

func (c namespaceClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return namespaces{c: c.c}.Get(name)
}
