package clientgo

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
	"github.com/listwatch/listwatch/interop/internal/kubetest"
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

// makers make informers of configmaps, one by each of the factories.
var makers = map[string]func(*testing.T, *rest.Config) cache.SharedIndexInformer{
	"typed": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
		return informers.NewSharedInformerFactory(typed(t, c), 0).Core().V1().ConfigMaps().Informer()
	},
	"dynamic": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
		client := must(dynamic.NewForConfig(c))(t)
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(configMaps).Informer()
	},
	"metadata": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
		client := must(metadata.NewForConfig(c))(t)
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(configMaps).Informer()
	},
}

func TestInformersAgreeWithAFreshList(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("WatchListClient=%t", watchList), func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			overEach(t, func(t *testing.T, p kubetest.Protocol) { testInformers(t, p, watchList) })
		})
	}
}

func testInformers(t *testing.T, p kubetest.Protocol, watchList bool) {
	s := kubetest.Start(t)
	client := typed(t, s.Config(p))
	writes(t, client, 100)
	var asked recorder
	all := make(map[string]*informer)
	for name, build := range makers {
		all[name] = start(t, build(t, asked.wrap(s.Config(p))))
	}
	for name, i := range all {
		if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced, i.registration.HasSynced) {
			t.Fatalf("%s: not synced", name)
		}
	}
	writes(t, client, 300)
	fresh := settle(t, client, slices.Collect(maps.Values(all)))
	for name, i := range all {
		i.check(t, name, fresh)
	}
	// All that the typed one holds is what was listed, to the last member. A decoder of client-go takes kind and apiVersion from what
	// comes alone, and leaves them to what comes in a list.
	for _, want := range fresh.Items {
		want.TypeMeta = metav1.TypeMeta{}
		got := all["typed"].stored(t, want.Namespace+"/"+want.Name)
		got.TypeMeta = metav1.TypeMeta{}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("the store is other than the list (-list +store):\n%s", diff)
		}
	}
	checkRequests(t, asked.requests("/configmaps"), watchList)
}

// checkRequests wants one streaming list of each informer, and no other request; or a list and a watch where streaming is off.
func checkRequests(t *testing.T, requests []*http.Request, watchList bool) {
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
	got, want := [3]int{lists, streams, watches}, [3]int{0, len(makers), 0}
	if !watchList {
		want = [3]int{len(makers), 0, len(makers)}
	}
	if got != want {
		t.Errorf("%d lists, %d streaming lists and %d watches, want %d", got[0], got[1], got[2], want)
	}
}

// An informer has a handler that keeps a copy of its own.
type informer struct {
	cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	marks        chan string // names of new objects that begin with mark

	mu       sync.Mutex
	copy     map[string]string // versions by key; guarded by mu
	mistakes []string          // guarded by mu
}

// mark begins the names of what settle writes.
const mark = "zz-mark-"

// settle waits until all have seen what has been written, and returns a fresh list. Twice, for an informer tells its handlers in no
// order what it has found by a list; what comes after it, it tells them last.
func settle(t *testing.T, client kubernetes.Interface, all []*informer) *corev1.ConfigMapList {
	t.Helper()
	for _, name := range []string{mark + "1", mark + "2"} {
		must(client.CoreV1().ConfigMaps("one").Create(t.Context(), configMap(name, nil, nil), metav1.CreateOptions{}))(t)
		for _, i := range all {
			if got := <-i.marks; got != name {
				t.Fatalf("saw %s, want %s", got, name)
			}
		}
	}
	return must(client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}))(t)
}

// start starts an informer and ends it with the test.
func start(t *testing.T, of cache.SharedIndexInformer) *informer {
	t.Helper()
	i := &informer{SharedIndexInformer: of, marks: make(chan string, 2), copy: make(map[string]string)}
	byLetter := func(o any) ([]string, error) {
		m, err := meta.Accessor(o)
		return []string{m.GetLabels()["letter"]}, err
	}
	if err := i.AddIndexers(cache.Indexers{"letter": byLetter}); err != nil {
		t.Fatal(err)
	}
	i.registration = must(i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { i.handle(nil, o) },
		UpdateFunc: i.handle,
		DeleteFunc: func(o any) { i.handle(o, nil) },
	}))(t)
	var ended sync.WaitGroup
	ended.Go(func() { i.RunWithContext(t.Context()) })
	t.Cleanup(ended.Wait)
	return i
}

// stored returns a copy of what a typed informer holds.
func (i *informer) stored(t *testing.T, key string) *corev1.ConfigMap {
	t.Helper()
	o, _, err := i.GetStore().GetByKey(key)
	m, ok := o.(*corev1.ConfigMap)
	if err != nil || !ok {
		t.Fatalf("%s: the store has %v, %v", key, o, err)
	}
	return m.DeepCopy()
}

// handle holds each change against the copy.
func (i *informer) handle(before, after any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of := after
	if after == nil {
		of = before
	}
	if gone, ok := of.(cache.DeletedFinalStateUnknown); ok {
		delete(i.copy, gone.Key)
		return
	}
	m, err := meta.Accessor(of)
	if err != nil {
		i.mistakes = append(i.mistakes, err.Error())
		return
	}
	key := m.GetNamespace() + "/" + m.GetName()
	if _, there := i.copy[key]; there != (before != nil) {
		i.mistakes = append(i.mistakes, fmt.Sprintf("%s: was there: %t, and is said to change from %v to %v", key, there, before, after))
	}
	if after == nil {
		delete(i.copy, key)
		return
	}
	i.copy[key] = m.GetResourceVersion()
	if before == nil && strings.HasPrefix(m.GetName(), mark) {
		i.marks <- m.GetName()
	}
}

// check holds the store, its index and the handler's copy against a list.
func (i *informer) check(t *testing.T, name string, list *corev1.ConfigMapList) {
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
		t.Errorf("%s: the store is other than the list (-list +store):\n%s", name, diff)
	}
	for letter, n := range letters {
		if found := must(i.GetIndexer().ByIndex("letter", letter))(t); len(found) != n {
			t.Errorf("%s: %d by the index of %q, want %d", name, len(found), letter, n)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !maps.Equal(i.copy, want) {
		t.Errorf("%s: the handlers have seen something else than the list (-list +seen):\n%s", name, cmp.Diff(want, i.copy))
	}
	for _, mistake := range i.mistakes {
		t.Errorf("%s: %s", name, mistake)
	}
}

// writes creates, updates and deletes configmaps in two namespaces, n times.
func writes(t *testing.T, client kubernetes.Interface, n int) {
	t.Helper()
	ctx := t.Context()
	for range n {
		namespace := client.CoreV1().ConfigMaps([]string{"one", "two"}[rand.IntN(2)])
		name, letter := fmt.Sprint("m", rand.IntN(40)), string(rune('a'+rand.IntN(4)))
		_, err := namespace.Get(ctx, name, metav1.GetOptions{})
		switch next := configMap(name, map[string]string{"letter": letter}, map[string]string{"n": fmt.Sprint(rand.Int())}); {
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
