package informer

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

// An endpoint is where a server is.
type endpoint struct {
	config *rest.Config
	group  schema.GroupVersion
	kind   string
	dial   dialer // nil: as usual
}

func (e endpoint) apiVersion() string { return e.group.String() }

// remote returns the collection at e.
func (e endpoint) remote(t *testing.T, r schema.GroupVersionResource) *client.Remote {
	t.Helper()
	path := "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
	if r.Group == "" {
		path = "/api/" + r.Version + "/" + r.Resource
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(e.config.CAData)
	c := &client.Remote{URL: e.config.Host + path, Network: transport.Network{Dial: e.dial, TLS: &tls.Config{RootCAs: pool}}}
	if e.config.BearerToken != "" {
		c.Header = func(context.Context, bool) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + e.config.BearerToken}}, nil
		}
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A widget is an object as a user of ours writes it.
type widget struct {
	listwatch.Metadata `json:"metadata"`
}

// A kubeWidget is one as a user of Kubernetes writes it.
type kubeWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// Kubernetes' types have these, too.
func (w *widget) GetResourceVersion() string   { return w.ResourceVersion }
func (w *widget) GetName() string              { return w.Name }
func (w *widget) GetNamespace() string         { return w.Namespace }
func (w *widget) GetLabels() map[string]string { return w.Labels }

// An object is what every type of this package is.
type object interface {
	GetName() string
	GetNamespace() string
	GetResourceVersion() string
	GetLabels() map[string]string
}

func keyOf(o object) string { return o.GetNamespace() + "/" + o.GetName() }

func look(o object) *seen {
	version, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return &seen{version, o.GetLabels()["n"]}
}

// An ourSubject is an Informer of ours, of any type.
type ourSubject[T object] struct{ informer.Informer[T] }

func newOurs[T object](t *testing.T, e endpoint, r schema.GroupVersionResource) subject {
	s, source := &ourSubject[T]{}, e.remote(t, r)
	s.Source = source
	s.Backoff = listwatch.Backoff{Min: 20 * time.Millisecond, Max: time.Second} // a test need not be gentle
	source.Backoff = s.Backoff
	return s
}

func (s *ourSubject[T]) handle(f func(change)) {
	s.Handle(informer.Handler[T]{
		OnAdd:    func(o T, _ bool) { f(change{key: keyOf(o), now: look(o)}) },
		OnUpdate: func(old, o T) { f(change{key: keyOf(o), old: look(old), now: look(o)}) },
		OnDelete: func(d informer.Deleted[T]) { f(change{key: d.Key.String(), gone: look(d.Value)}) },
	}, nil)
}

func (s *ourSubject[T]) run(ctx context.Context) { _ = s.Run(ctx) }

func (s *ourSubject[T]) reaches(ctx context.Context, _ string, version uint64) error {
	return s.WaitForVersion(ctx, listwatch.Version(version))
}

func (s *ourSubject[T]) state() map[string]seen {
	all := make(map[string]seen)
	for key, o := range s.Snapshot().All() {
		all[key.String()] = *look(o)
	}
	return all
}

// A theirSubject is client-go's.
type theirSubject struct {
	cache.SharedIndexInformer
	t *testing.T
}

func newTheirs(t *testing.T, e endpoint, r schema.GroupVersionResource) subject {
	config := rest.CopyConfig(e.config)
	config.Dial = e.dial
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &theirSubject{dynamicinformer.NewDynamicSharedInformerFactory(c, 0).ForResource(r).Informer(), t}
}

func (s *theirSubject) handle(f func(change)) {
	_, err := s.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f(change{key: keyOf(o.(object)), now: look(o.(object))}) },
		UpdateFunc: func(old, o any) { f(change{key: keyOf(o.(object)), old: look(old.(object)), now: look(o.(object))}) },
		DeleteFunc: func(o any) {
			if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			f(change{key: keyOf(o.(object)), gone: look(o.(object))})
		},
	})
	if err != nil {
		s.t.Error(err)
	}
}

func (s *theirSubject) run(ctx context.Context) { s.RunWithContext(ctx) }

// reaches polls: client-go's informer can't be waited for.
func (s *theirSubject) reaches(ctx context.Context, key string, version uint64) error {
	for ctx.Err() == nil {
		if o, ok, _ := s.GetStore().GetByKey(key); ok && look(o.(object)).version >= version {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (s *theirSubject) state() map[string]seen {
	all := make(map[string]seen)
	for _, o := range s.GetStore().List() {
		all[keyOf(o.(object))] = *look(o.(object))
	}
	return all
}
