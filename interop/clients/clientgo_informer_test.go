package clients

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informerFactories create informers of configmaps with each of client-go's factories.
var informerFactories = map[string]func(*testing.T, *rest.Config) cache.SharedIndexInformer{
	"typed": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
		return informers.NewSharedInformerFactory(newClientset(t, c), 0).Core().V1().ConfigMaps().Informer()
	},
	"dynamic": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
		client := testkit.Must(dynamic.NewForConfig(c))(t)
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(configMapGVR).Informer()
	},
	"metadata": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
		client := testkit.Must(metadata.NewForConfig(c))(t)
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(configMapGVR).Informer()
	},
}

func TestInformersAgreeWithAFreshList(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("WatchListClient=%t", watchList), func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			forEachProtocol(t, func(t *testing.T, p testapi.Protocol) { testInformers(t, p, watchList) })
		})
	}
}

func testInformers(t *testing.T, p testapi.Protocol, watchList bool) {
	s := testapi.Start(t)
	client := newClientset(t, s.Config(p))
	writeRandomly(t, client, 100)
	var recorder requestRecorder
	all := make(map[string]*checkedInformer)
	for name, build := range informerFactories {
		all[name] = startInformer(t, build(t, recorder.record(s.Config(p))))
	}
	for name, i := range all {
		if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced, i.registration.HasSynced) {
			t.Fatalf("%s: the informer did not sync", name)
		}
	}
	writeRandomly(t, client, 300)
	fresh := waitForMarkers(t, client, slices.Collect(maps.Values(all)))
	for name, i := range all {
		i.check(t, name, fresh)
	}
	// The store of the typed informer must equal the list in every field except kind and
	// apiVersion: client-go's decoder removes these from single objects, but not from list items.
	for _, want := range fresh.Items {
		want.TypeMeta = metav1.TypeMeta{}
		got := all["typed"].stored(t, want.Namespace+"/"+want.Name)
		got.TypeMeta = metav1.TypeMeta{}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("the store differs from the list (-list +store):\n%s", diff)
		}
	}
	wantRequests(t, recorder.requests("/configmaps"), watchList)
}

// wantRequests fails the test unless each informer has sent only one streaming list or, if
// watchList is false, one list and one watch.
func wantRequests(t *testing.T, requests []*http.Request, watchList bool) {
	t.Helper()
	var lists, streams, watches int
	for _, r := range requests {
		q := r.URL.Query()
		switch {
		case q.Get("watch") != "true":
			lists++
		case q.Get("sendInitialEvents") == "true":
			streams++
		default:
			watches++
		}
	}
	got, want := [3]int{lists, streams, watches}, [3]int{0, len(informerFactories), 0}
	if !watchList {
		want = [3]int{len(informerFactories), 0, len(informerFactories)}
	}
	if got != want {
		t.Errorf("got %d lists, %d streaming lists and %d watches, want %d", got[0], got[1], got[2], want)
	}
}

// A checkedInformer is an informer with a handler that records the version of each object.
type checkedInformer struct {
	cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	markers      chan string // the names of the markers (see waitForMarkers) that are added

	mu         sync.Mutex
	versions   map[string]string // by key; guarded by mu
	violations []string          // inconsistent notifications; guarded by mu
}

// markerPrefix begins the names of the objects that waitForMarkers creates.
const markerPrefix = "zz-mark-"

// waitForMarkers waits until all informers have seen all earlier writes, and returns a
// fresh list. It creates two markers, because an informer may pass the objects of a list to
// its handlers in any order, but the second marker arrives after all of them.
func waitForMarkers(t *testing.T, client kubernetes.Interface, all []*checkedInformer) *corev1.ConfigMapList {
	t.Helper()
	for _, name := range []string{markerPrefix + "1", markerPrefix + "2"} {
		testkit.Must(client.CoreV1().ConfigMaps("one").Create(t.Context(), configMap(name, nil, nil),
			metav1.CreateOptions{}))(t)
		for _, i := range all {
			if got := <-i.markers; got != name {
				t.Fatalf("got marker %s, want %s", got, name)
			}
		}
	}
	return testkit.Must(client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}))(t)
}

// startInformer runs an informer until the test ends.
func startInformer(t *testing.T, informer cache.SharedIndexInformer) *checkedInformer {
	t.Helper()
	i := &checkedInformer{
		SharedIndexInformer: informer, markers: make(chan string, 2),
		versions: make(map[string]string),
	}
	byLetter := func(o any) ([]string, error) {
		m, err := meta.Accessor(o)
		return []string{m.GetLabels()["letter"]}, err
	}
	if err := i.AddIndexers(cache.Indexers{"letter": byLetter}); err != nil {
		t.Fatal(err)
	}
	i.registration = testkit.Must(i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { i.handle(nil, o) },
		UpdateFunc: i.handle,
		DeleteFunc: func(o any) { i.handle(o, nil) },
	}))(t)
	var ended sync.WaitGroup
	ended.Go(func() { i.RunWithContext(t.Context()) })
	t.Cleanup(ended.Wait)
	return i
}

// stored returns a copy of an object in the store of a typed informer.
func (i *checkedInformer) stored(t *testing.T, key string) *corev1.ConfigMap {
	t.Helper()
	o, _, err := i.GetStore().GetByKey(key)
	m, ok := o.(*corev1.ConfigMap)
	if err != nil || !ok {
		t.Fatalf("%s: the store returned %v, %v, want a configmap", key, o, err)
	}
	return m.DeepCopy()
}

// handle compares each notification with the recorded versions and updates them.
func (i *checkedInformer) handle(before, after any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	object := after
	if after == nil {
		object = before
	}
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		delete(i.versions, tombstone.Key)
		return
	}
	m, err := meta.Accessor(object)
	if err != nil {
		i.violations = append(i.violations, err.Error())
		return
	}
	key := m.GetNamespace() + "/" + m.GetName()
	if _, exists := i.versions[key]; exists != (before != nil) {
		i.violations = append(i.violations,
			fmt.Sprintf("%s: notification from %v to %v, but the object existed: %t", key, before, after, exists))
	}
	if after == nil {
		delete(i.versions, key)
		return
	}
	i.versions[key] = m.GetResourceVersion()
	if before == nil && strings.HasPrefix(m.GetName(), markerPrefix) {
		i.markers <- m.GetName()
	}
}

// check compares the store, its index and the recorded versions with a list.
func (i *checkedInformer) check(t *testing.T, name string, list *corev1.ConfigMapList) {
	t.Helper()
	want, letters := make(map[string]string), make(map[string]int)
	for _, o := range list.Items {
		want[o.Namespace+"/"+o.Name] = o.ResourceVersion
		letters[o.Labels["letter"]]++
	}
	got := make(map[string]string)
	for _, o := range i.GetStore().List() {
		m, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		got[m.GetNamespace()+"/"+m.GetName()] = m.GetResourceVersion()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the store differs from the list (-list +store):\n%s", name, diff)
	}
	for letter, n := range letters {
		if found := testkit.Must(i.GetIndexer().ByIndex("letter", letter))(t); len(found) != n {
			t.Errorf("%s: the index has %d objects of letter %q, want %d", name, len(found), letter, n)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !maps.Equal(i.versions, want) {
		t.Errorf("%s: the handler's copy differs from the list (-list +copy):\n%s", name, cmp.Diff(want, i.versions))
	}
	for _, violation := range i.violations {
		t.Errorf("%s: %s", name, violation)
	}
}

// writeRandomly creates, updates or deletes a configmap in one of two namespaces, n times.
func writeRandomly(t *testing.T, client kubernetes.Interface, n int) {
	t.Helper()
	ctx := t.Context()
	for range n {
		namespace := client.CoreV1().ConfigMaps([]string{"one", "two"}[rand.IntN(2)])
		name, letter := fmt.Sprint("m", rand.IntN(40)), string(rune('a'+rand.IntN(4)))
		_, err := namespace.Get(ctx, name, metav1.GetOptions{})
		switch next := configMap(name, map[string]string{"letter": letter},
			map[string]string{"n": fmt.Sprint(rand.Int())}); {
		case err != nil:
			_, err = namespace.Create(ctx, next, metav1.CreateOptions{})
		case rand.IntN(3) == 0:
			err = namespace.Delete(ctx, name, metav1.DeleteOptions{})
		default:
			_, err = namespace.Update(ctx, next, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
