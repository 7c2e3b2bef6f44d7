package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/transport"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// A serverEndpoint is a collection on a server.
type serverEndpoint struct {
	config *rest.Config
	group  schema.GroupVersion
	kind   string
	dial   dialFunc // if nil, the default is used
}

func (e serverEndpoint) apiVersion() string { return e.group.String() }

// remote returns the collection of r as a Source.
func (e serverEndpoint) remote(t *testing.T, r schema.GroupVersionResource) *client.Remote {
	t.Helper()
	path := "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
	if r.Group == "" {
		path = "/api/" + r.Version + "/" + r.Resource
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(e.config.CAData)
	c := &client.Remote{
		URL:     e.config.Host + path,
		Network: transport.Network{Dial: e.dial, TLS: &tls.Config{RootCAs: pool}},
	}
	if e.config.BearerToken != "" {
		c.Header = func(context.Context, bool) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + e.config.BearerToken}}, nil
		}
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A plainWidget is a type that only our library can decode.
type plainWidget struct {
	listwatch.Metadata `json:"metadata"`
}

// A kubeWidget is a Go type as users of Kubernetes declare it for a custom resource.
type kubeWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// With these methods, *plainWidget is a namedObject, as Kubernetes' types are.
func (w *plainWidget) GetResourceVersion() string   { return w.ResourceVersion }
func (w *plainWidget) GetName() string              { return w.Name }
func (w *plainWidget) GetNamespace() string         { return w.Namespace }
func (w *plainWidget) GetLabels() map[string]string { return w.Labels }

// A namedObject is an object of any type that these tests use.
type namedObject interface {
	GetName() string
	GetNamespace() string
	GetResourceVersion() string
	GetLabels() map[string]string
}

func keyOf(o namedObject) string { return o.GetNamespace() + "/" + o.GetName() }

func stateOf(o namedObject) *objectState {
	version, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return &objectState{version, o.GetLabels()["n"]}
}

// An ourInformer adapts our informer to testedInformer.
type ourInformer[T namedObject] struct{ informer.Informer[T] }

func newOurInformer[T namedObject](t *testing.T, e serverEndpoint, r schema.GroupVersionResource) testedInformer {
	s, source := &ourInformer[T]{}, e.remote(t, r)
	s.Source = source
	// A short backoff keeps the test short.
	s.Backoff = listwatch.Backoff{Min: 20 * time.Millisecond, Max: time.Second}
	source.Backoff = s.Backoff
	return s
}

func (i *ourInformer[T]) handle(f func(notification)) {
	i.Handle(informer.Handler[T]{
		OnAdd:    func(o T, _ bool) { f(notification{key: keyOf(o), current: stateOf(o)}) },
		OnUpdate: func(old, o T) { f(notification{key: keyOf(o), old: stateOf(old), current: stateOf(o)}) },
		OnDelete: func(d informer.Deleted[T]) { f(notification{key: d.Key.String(), deleted: stateOf(d.Value)}) },
	}, nil)
}

func (i *ourInformer[T]) run(ctx context.Context) { _ = i.Run(ctx) }

func (i *ourInformer[T]) waitForVersion(ctx context.Context, _ string, version uint64) error {
	return i.WaitForVersion(ctx, listwatch.Version(version))
}

func (i *ourInformer[T]) snapshot() map[string]objectState {
	all := make(map[string]objectState)
	for key, o := range i.Snapshot().All() {
		all[key.String()] = *stateOf(o)
	}
	return all
}

// A clientGoInformer adapts client-go's informer to testedInformer.
type clientGoInformer struct {
	cache.SharedIndexInformer
	t *testing.T
}

func newClientGoInformer(t *testing.T, e serverEndpoint, r schema.GroupVersionResource) testedInformer {
	config := rest.CopyConfig(e.config)
	config.Dial = e.dial
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &clientGoInformer{dynamicinformer.NewDynamicSharedInformerFactory(c, 0).ForResource(r).Informer(), t}
}

func (c *clientGoInformer) handle(f func(notification)) {
	_, err := c.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { f(notification{key: keyOf(o.(namedObject)), current: stateOf(o.(namedObject))}) },
		UpdateFunc: func(old, o any) {
			f(notification{
				key: keyOf(o.(namedObject)), old: stateOf(old.(namedObject)),
				current: stateOf(o.(namedObject)),
			})
		},
		DeleteFunc: func(o any) {
			if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			f(notification{key: keyOf(o.(namedObject)), deleted: stateOf(o.(namedObject))})
		},
	})
	if err != nil {
		c.t.Error(err)
	}
}

func (c *clientGoInformer) run(ctx context.Context) { c.RunWithContext(ctx) }

// waitForVersion polls, because client-go's informer has no method for this.
func (c *clientGoInformer) waitForVersion(ctx context.Context, key string, version uint64) error {
	for ctx.Err() == nil {
		if o, ok, _ := c.GetStore().GetByKey(key); ok && stateOf(o.(namedObject)).version >= version {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (c *clientGoInformer) snapshot() map[string]objectState {
	all := make(map[string]objectState)
	for _, o := range c.GetStore().List() {
		all[keyOf(o.(namedObject))] = *stateOf(o.(namedObject))
	}
	return all
}
