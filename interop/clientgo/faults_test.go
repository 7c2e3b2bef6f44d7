package clientgo

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"
)

// An informer of ten thousand objects lives through a restart of the server, a cut connection each second for ten seconds, and the loss
// of the history that it would need, while somebody writes; at the end its store is what a list shows.
func TestAnInformerOfTenThousandObjectsSurvives(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	fill(t, s, 10000)
	var asked recorder
	i := start(t, makers["typed"](t, asked.wrap(s.Config(kubetest.HTTP2))))
	if !cache.WaitForCacheSync(t.Context().Done(), i.registration.HasSynced) {
		t.Fatal("not synced")
	}
	stop := scribble(t, s)
	s.Restart(nil)
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for range 10 {
		<-each.C
		s.Cut()
	}
	stop()
	before := len(streams(&asked))
	s.Restart(func() {
		update(t, s, 0)
		s.DB.Compact()
	})
	i.check(t, "informer", settle(t, typed(t, s.Config(kubetest.HTTP1)), []*informer{i}))
	if len(streams(&asked)) == before {
		t.Error("no streaming list after the history was lost")
	}
}

// An informer that does not stream its lists finds back from a lost history too: it lists at the version that it knows, or a newer one.
func TestInformersWithoutStreamingListsSurviveALostHistory(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false)
	s := kubetest.Start(t)
	fill(t, s, 1200)
	var asked recorder
	i := start(t, makers["typed"](t, asked.wrap(s.Config(kubetest.HTTP1))))
	if !cache.WaitForCacheSync(t.Context().Done(), i.registration.HasSynced) {
		t.Fatal("not synced")
	}
	s.Restart(func() {
		update(t, s, 0)
		s.DB.Compact()
	})
	i.check(t, "informer", settle(t, typed(t, s.Config(kubetest.HTTP1)), []*informer{i}))
	var again int
	for _, r := range asked.requests("/configmaps") {
		q := r.URL.Query()
		if rv := q.Get("resourceVersion"); q.Get("watch") == "" && rv != "" && rv != "0" {
			again++
		}
	}
	if n := len(streams(&asked)); again == 0 || n > 0 {
		t.Errorf("%d lists at a version and %d streaming lists, want the former alone", again, n)
	}
}

// streams returns the streaming lists that were asked for.
func streams(r *recorder) (urls []string) {
	for _, request := range r.requests("/configmaps") {
		if request.URL.Query().Get("sendInitialEvents") == "true" {
			urls = append(urls, request.URL.String())
		}
	}
	return urls
}

// fill creates n configmaps in the store.
func fill(t *testing.T, s *kubetest.Server, n int) {
	t.Helper()
	c := s.Collection("configmaps")
	for i := range n {
		data := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"letter":%q}},"data":{"k":"v"}}`, nameOf(i), string(rune('a'+i%4)))
		if _, err := c.CreateIn(t.Context(), "one", data); err != nil {
			t.Fatal(err)
		}
	}
}

func nameOf(i int) string { return fmt.Sprintf("m%05d", i) }

// update writes the i-th configmap anew.
func update(t *testing.T, s *kubetest.Server, i int) {
	t.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"one","labels":{"letter":"e"}},"data":{"at":%q}}`, nameOf(i), s.DB.Version())
	if _, err := s.Collection("configmaps").Replace(t.Context(), keyOf(i), data); err != nil {
		t.Errorf("update %d: %v", i, err)
	}
}

// scribble writes a few hundred times a second until stop is called.
func scribble(t *testing.T, s *kubetest.Server) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		pause := time.NewTicker(3 * time.Millisecond)
		defer pause.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
				update(t, s, i%10000)
			}
		}
	})
	stop = func() {
		cancel()
		ended.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func keyOf(i int) listwatch.Key { return listwatch.Key{Namespace: "one", Name: nameOf(i)} }
