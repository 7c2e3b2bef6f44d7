package storage

import (
	"bytes"
	"context"
	"errors"
	"flag"
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

// A database is one of our stores. All collections of it share a version counter.
type database interface {
	Collection(store.CollectionSpec) (*store.Collection, error)
}

// An openFunc opens an empty database for one test. The suite expects the first write to
// have version 2, as in etcd.
type openFunc func(testing.TB) database

// A fixture holds everything that a suiteTest needs.
type fixture struct {
	*Storage
	codec *failingCodec
	pods  *store.Collection
	other *store.Collection // a second collection of the same database
	lags  bool              // whether the database is a laggingDatabase
}

// A laggingDatabase has collections that receive their writes independently. Therefore a list of
// one collection that accepts any version may be older than the newest write to another collection.
type laggingDatabase interface{ lags() }

var podResource = store.CollectionSpec{
	APIVersion: examplev1.SchemeGroupVersion.String(), Kind: "Pod", Namespaced: true, Fields: []string{"spec.nodeName"},
}

func newFixture(t testing.TB, open openFunc) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := errors.Join(example.AddToScheme(scheme), examplev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		codec: &failingCodec{Codec: apitesting.TestCodec(serializer.NewCodecFactory(scheme),
			examplev1.SchemeGroupVersion)},
	}
	db := open(t)
	_, f.lags = db.(laggingDatabase)
	var err error
	if f.pods, err = db.Collection(podResource); err != nil {
		t.Fatal(err)
	}
	if f.other, err = db.Collection(store.CollectionSpec{Kind: "Other"}); err != nil {
		t.Fatal(err)
	}
	f.Storage, err = New(f.pods,
		Options{Prefix: "/pods/", New: func() runtime.Object { return &example.Pod{} }, Codec: f.codec})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// advance increases the version of the database by writing to the other collection.
func (f *fixture) advance(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	o, err := f.other.Create(ctx, []byte(`{"metadata":{"generateName":"o-"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return int64(o.Version)
}

// compact compacts the history before resourceVersion. It also increases the version of the
// database, as Kubernetes' compactor does by writing a record to etcd.
func (f *fixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	v, err := listwatch.ParseVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	log, ok := f.pods.Backend().(interface{ CompactTo(listwatch.Version) })
	if !ok {
		t.Fatal("the store cannot be compacted")
	}
	f.advance(ctx, t)
	log.CompactTo(v)
}

// checkStored checks that the object stored at path is compact JSON with its version and
// without a selfLink.
func (f *fixture) checkStored(ctx context.Context, t *testing.T, path string) {
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
		t.Errorf("%s is stored as %s (%v), want compact JSON with version %v", path, o.Data, err, o.Version)
	}
	pod := &example.Pod{}
	if _, err := f.decode(ctx, o, pod); err != nil || pod.GetSelfLink() != "" {
		t.Errorf("%s: got selfLink %q, error %v; want no selfLink", o.Data, pod.GetSelfLink(), err)
	}
}

// A prefixedFixture has a transformer that adds a prefix to the stored bytes.
type prefixedFixture struct{ *fixture }

var _ storagetesting.InterfaceWithPrefixTransformer = prefixedFixture{}

func newPrefixedFixture(f *fixture) prefixedFixture {
	f.Transform(func(value.Transformer) value.Transformer {
		return storagetesting.NewPrefixTransformer([]byte("test!"), false)
	})
	return prefixedFixture{f}
}

func (p prefixedFixture) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	return p.Transform(func(t value.Transformer) value.Transformer {
		changed := *t.(*storagetesting.PrefixTransformer)
		return modify(&changed)
	})
}

func (p prefixedFixture) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	return p.Transform(modify)
}

// A failingCodec is a codec that fails on demand.
type failingCodec struct {
	runtime.Codec
	failing atomic.Bool
}

var errInjected = errors.New("injected failure")

func (f *failingCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if f.failing.Load() {
		return nil, nil, errInjected
	}
	return f.Codec.Decode(data, defaults, into)
}

// A failingTransformer is a transformer that fails on demand.
type failingTransformer struct {
	value.Transformer
	failing atomic.Bool
}

func (f *failingTransformer) TransformFromStorage(
	ctx context.Context, data []byte, dataCtx value.Context,
) ([]byte, bool, error) {
	if f.failing.Load() {
		return nil, false, errInjected
	}
	return f.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

// A suiteTest is a test function of the suite.
type suiteTest struct {
	name string // the name of the function
	run  func(context.Context, *testing.T, *fixture)
	// serial must be true if the test sets a feature gate, because feature gates apply to
	// the whole process, or if it must read an object before its time to live of a second ends.
	serial bool
	// timed must be true if a slow machine can make the test fail. Some tests wait for only a
	// fraction of a second. Others expect a list that accepts any version to include the latest
	// write. Over etcd, such a list lacks the write if its event takes longer than 100 ms. A timed
	// test runs only with the flag -timed, and not in parallel with others.
	timed bool
}

// withStorage adapts a test of the suite that only needs a storage.
func withStorage(run func(context.Context, *testing.T, kube.Interface)) func(context.Context, *testing.T, *fixture) {
	return func(ctx context.Context, t *testing.T, f *fixture) { run(ctx, t, f) }
}

// withPrefix adapts a test of the suite that needs a storage with a prefix before the stored bytes.
// The test can change the prefix.
func withPrefix(
	run func(context.Context, *testing.T, storagetesting.InterfaceWithPrefixTransformer),
) func(context.Context, *testing.T, *fixture) {
	return func(ctx context.Context, t *testing.T, f *fixture) { run(ctx, t, newPrefixedFixture(f)) }
}

var timedFlag = flag.Bool("timed", false, "also run the tests that need a machine with nothing else to do")

// runSuite runs the suite over a store and skips the exceptions.
func runSuite(t *testing.T, open openFunc) {
	for _, group := range [][]suiteTest{writeTests, readTests, watchTests} {
		for _, r := range group {
			t.Run(r.name, func(t *testing.T) {
				if r.timed && !*timedFlag {
					t.Skip("a busy machine can make the test fail: make long-storage runs it")
				}
				if !r.serial && !r.timed {
					t.Parallel()
				}
				r.run(t.Context(), t, newFixture(t, open))
			})
		}
	}
	for _, e := range exceptions {
		t.Run(e.name, func(t *testing.T) { t.Skip("exception: " + e.assertion) })
	}
}
