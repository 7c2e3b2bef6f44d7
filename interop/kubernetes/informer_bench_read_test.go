package kubernetes

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// A localStore is the store of an informer. It has an index of the label tier, which has
// 100 values, and an index of the 10 namespaces.
type localStore interface {
	put(*corev1.ConfigMap, int)
	list() int
	namespace(string) int
	tier(string) int
}

// BenchmarkRead measures reads of a local store of 100,000 objects while a goroutine writes
// to it as fast as possible. It also reports the duration of the writes.
func BenchmarkRead(b *testing.B) {
	objects := make([]*corev1.ConfigMap, benchObjectCount)
	for i := range objects {
		if err := json.Unmarshal(configMapJSON(i, 0), &objects[i]); err != nil {
			b.Fatal(err)
		}
	}
	stores := map[string]localStore{"ours": newOurLocalStore(b), "client-go": newClientGoStore()}
	for _, s := range stores {
		for i, o := range objects {
			s.put(o, i+1)
		}
	}
	for _, read := range []struct {
		name string
		do   func(localStore) int
		want int
	}{
		{"100000-listed", localStore.list, benchObjectCount},
		{"10000-by-namespace", func(s localStore) int { return s.namespace("team-3") }, benchObjectCount / 10},
		{"1000-by-index", func(s localStore) int { return s.tier("tier-7") }, benchObjectCount / 100},
	} {
		for _, name := range []string{"ours", "client-go"} {
			b.Run(read.name+"/"+name,
				func(b *testing.B) { benchmarkRead(b, stores[name], objects, read.do, read.want) })
		}
	}
}

func benchmarkRead(b *testing.B, s localStore, objects []*corev1.ConfigMap, read func(localStore) int, want int) {
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writes, slowest, started := 0, time.Duration(0), time.Now()
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			start := time.Now()
			s.put(objects[writes*7919%len(objects)], benchObjectCount+writes)
			slowest = max(slowest, time.Since(start))
			writes++
		}
	})
	for b.Loop() {
		if n := read(s); n != want {
			b.Fatalf("got %d objects, want %d", n, want)
		}
	}
	close(stop)
	writer.Wait()
	b.ReportMetric(float64(time.Since(started).Nanoseconds())/float64(writes), "ns/write")
	b.ReportMetric(float64(slowest.Microseconds()), "slowest-write-µs")
}

type ourLocalStore struct {
	informer.Indexer[*corev1.ConfigMap]
}

func newOurLocalStore(b *testing.B) *ourLocalStore {
	s := &ourLocalStore{}
	err := s.AddIndex("tier",
		func(i *informer.Item[*corev1.ConfigMap]) []string { return []string{i.Labels()["tier"]} })
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (s *ourLocalStore) put(o *corev1.ConfigMap, version int) {
	_ = s.Put(&informer.Item[*corev1.ConfigMap]{
		Key: listwatch.Key{Namespace: o.Namespace, Name: o.Name}, Version: listwatch.Version(version), Value: o,
	})
}

func (s *ourLocalStore) list() int {
	all, _ := s.List(listwatch.Query{})
	return len(all)
}

func (s *ourLocalStore) namespace(name string) int {
	all, _ := s.List(listwatch.Query{Selection: listwatch.Selection{Namespace: name}})
	return len(all)
}

func (s *ourLocalStore) tier(value string) int {
	all, _ := s.ByIndex("tier", value)
	return len(all)
}

type clientGoStore struct{ cache.Indexer }

func newClientGoStore() clientGoStore {
	return clientGoStore{cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"tier": func(o any) ([]string,
			error,
		) {
			return []string{o.(*corev1.ConfigMap).Labels["tier"]}, nil
		},
	})}
}

func (s clientGoStore) put(o *corev1.ConfigMap, _ int) { _ = s.Indexer.Update(o) }
func (s clientGoStore) list() int                      { return len(s.Indexer.List()) }

func (s clientGoStore) namespace(name string) int {
	all, _ := s.ByIndex(cache.NamespaceIndex, name)
	return len(all)
}

func (s clientGoStore) tier(value string) int {
	all, _ := s.ByIndex("tier", value)
	return len(all)
}
