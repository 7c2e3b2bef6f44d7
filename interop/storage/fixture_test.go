package storage

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	kube "k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// A database is a store of ours: collections with one counter of versions.
type database interface {
	Collection(store.CollectionSpec) (*store.Collection, error)
}

// An opener opens an empty database, for one test, whose first write has version 2, as in etcd: the suite counts on that.
type opener func(testing.TB) database

// A fixture is what runners ask for.
type fixture struct {
	*Storage
	codec *breakable
	pods  *store.Collection
	other *store.Collection // another collection of the same database
	lags  bool              // a list that takes any state may be one from before the newest write to another collection
}

// A lagging database is one whose collections follow something each for itself.
type lagging interface{ lags() }

var podResource = store.CollectionSpec{
	APIVersion: examplev1.SchemeGroupVersion.String(), Kind: "Pod", Namespaced: true, Fields: []string{"spec.nodeName"},
}

func newFixture(t testing.TB, open opener) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := errors.Join(example.AddToScheme(scheme), examplev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	f := &fixture{codec: &breakable{Codec: apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)}}
	db := open(t)
	_, f.lags = db.(lagging)
	var err error
	if f.pods, err = db.Collection(podResource); err != nil {
		t.Fatal(err)
	}
	if f.other, err = db.Collection(store.CollectionSpec{Kind: "Other"}); err != nil {
		t.Fatal(err)
	}
	f.Storage, err = New(f.pods, Options{Prefix: "/pods/", New: func() runtime.Object { return &example.Pod{} }, Codec: f.codec})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// advance writes into the other collection, which moves the version on.
func (f *fixture) advance(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	o, err := f.other.Create(ctx, []byte(`{"metadata":{"generateName":"o-"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return int64(o.Version)
}

// compact forgets the history before a version. It moves the version on, as Kubernetes' compactor does, which keeps its own record in
// etcd.
func (f *fixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	v, err := listwatch.ParseVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	log, ok := f.pods.Backend().(interface{ CompactTo(listwatch.Version) })
	if !ok {
		t.Fatal("the store can't forget its history")
	}
	f.advance(ctx, t)
	log.CompactTo(v)
}

// kept checks what is kept at path: compact JSON that knows its version, and an object without a selfLink in it.
func (f *fixture) kept(ctx context.Context, t *testing.T, path string) {
	t.Helper()
	key, err := f.keyOf(path)
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.pods.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := listwatch.ParseObject(o.Data)
	if err != nil || parsed.Version != o.Version || !bytes.Equal(parsed.Data, o.Data) {
		t.Errorf("%s is kept as %s (%v), want compact JSON of version %v", path, o.Data, err, o.Version)
	}
	pod := &example.Pod{}
	if _, err := f.decode(ctx, o, pod); err != nil || pod.GetSelfLink() != "" {
		t.Errorf("%s: selfLink %q, %v", o.Data, pod.GetSelfLink(), err)
	}
}

// prefixed is a fixture with a transformer that puts a prefix before what is kept.
type prefixed struct{ *fixture }

var _ storagetesting.InterfaceWithPrefixTransformer = prefixed{}

func newPrefixed(f *fixture) prefixed {
	f.Transform(func(value.Transformer) value.Transformer {
		return storagetesting.NewPrefixTransformer([]byte("test!"), false)
	})
	return prefixed{f}
}

func (p prefixed) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	return p.Transform(func(t value.Transformer) value.Transformer {
		changed := *t.(*storagetesting.PrefixTransformer)
		return modify(&changed)
	})
}

func (p prefixed) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	return p.Transform(modify)
}

// breakable is a codec that can be told to fail.
type breakable struct {
	runtime.Codec
	broken atomic.Bool
}

var errBroken = errors.New("told to fail")

func (b *breakable) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if b.broken.Load() {
		return nil, nil, errBroken
	}
	return b.Codec.Decode(data, defaults, into)
}

// brittle is a transformer that can be told to fail.
type brittle struct {
	value.Transformer
	broken atomic.Bool
}

func (b *brittle) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if b.broken.Load() {
		return nil, false, errBroken
	}
	return b.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

// A runner is one of the suite.
type runner struct {
	name string // that of the function
	run  func(context.Context, *testing.T, *fixture)
	// serial is true where the runner sets a feature gate of the whole process.
	serial bool
}

// plain is a runner that wants a storage and nothing else.
func plain(run func(context.Context, *testing.T, kube.Interface)) func(context.Context, *testing.T, *fixture) {
	return func(ctx context.Context, t *testing.T, f *fixture) { run(ctx, t, f) }
}

// withPrefix is a runner that changes the prefix of what is kept.
func withPrefix(run func(context.Context, *testing.T, storagetesting.InterfaceWithPrefixTransformer)) func(context.Context, *testing.T, *fixture) {
	return func(ctx context.Context, t *testing.T, f *fixture) { run(ctx, t, newPrefixed(f)) }
}

// suite runs all of the suite that can be run over a store, and skips the exceptions.
func suite(t *testing.T, open opener) {
	for _, group := range [][]runner{writes, reads, watches} {
		for _, r := range group {
			t.Run(r.name, func(t *testing.T) {
				if !r.serial {
					t.Parallel()
				}
				r.run(t.Context(), t, newFixture(t, open))
			})
		}
	}
	for _, e := range exceptions {
		t.Run(e.name, func(t *testing.T) { t.Skip("can't hold: " + e.assertion) })
	}
}
