package clients

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"
)

// An informer of ten thousand objects survives a restart of the server and a cut connection each
// second for ten seconds, while a writer updates the objects. Then it survives the loss of the
// history that it needs. At the end, the store of the informer equals a list.
func TestLargeInformerSurvivesFaults(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t)
	createConfigMaps(t, s, 10000)
	var recorder requestRecorder
	i := startInformer(t, informerFactories["typed"](t, recorder.record(s.Config(testapi.HTTP2))))
	if !cache.WaitForCacheSync(t.Context().Done(), i.registration.HasSynced) {
		t.Fatal("the informer did not sync")
	}
	stop := updateInBackground(t, s)
	s.Restart(nil)
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for range 10 {
		<-each.C
		s.Cut()
	}
	stop()
	before := len(streamingLists(&recorder))
	s.Restart(func() {
		updateConfigMap(t, s, 0)
		s.DB.Compact()
	})
	i.check(t, "informer", waitForMarkers(t, newClientset(t, s.Config(testapi.HTTP1)), []*checkedInformer{i}))
	if len(streamingLists(&recorder)) == before {
		t.Error("the informer requested no streaming list after the history was lost")
	}
}

// An informer without streaming lists also recovers after a loss of the history: it lists
// at a version that is not older than the last one it has seen.
func TestInformerWithoutWatchListRelists(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false)
	s := testapi.Start(t)
	createConfigMaps(t, s, 1200)
	var recorder requestRecorder
	i := startInformer(t, informerFactories["typed"](t, recorder.record(s.Config(testapi.HTTP1))))
	if !cache.WaitForCacheSync(t.Context().Done(), i.registration.HasSynced) {
		t.Fatal("the informer did not sync")
	}
	s.Restart(func() {
		updateConfigMap(t, s, 0)
		s.DB.Compact()
	})
	i.check(t, "informer", waitForMarkers(t, newClientset(t, s.Config(testapi.HTTP1)), []*checkedInformer{i}))
	var relists int
	for _, r := range recorder.requests("/configmaps") {
		q := r.URL.Query()
		if rv := q.Get("resourceVersion"); q.Get("watch") == "" && rv != "" && rv != "0" {
			relists++
		}
	}
	if n := len(streamingLists(&recorder)); relists == 0 || n > 0 {
		t.Errorf("got %d lists at a version and %d streaming lists, want only lists at a version", relists, n)
	}
}

// streamingLists returns the URLs of the recorded requests for streaming lists.
func streamingLists(r *requestRecorder) (urls []string) {
	for _, request := range r.requests("/configmaps") {
		if request.URL.Query().Get("sendInitialEvents") == "true" {
			urls = append(urls, request.URL.String())
		}
	}
	return urls
}

// createConfigMaps creates n configmaps in the store.
func createConfigMaps(t *testing.T, s *testapi.Server, n int) {
	t.Helper()
	c := s.Collection("configmaps")
	for i := range n {
		data := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"letter":%q}},"data":{"k":"v"}}`, configMapName(i),
			string(rune('a'+i%4)))
		if _, err := c.CreateIn(t.Context(), "one", data); err != nil {
			t.Fatal(err)
		}
	}
}

func configMapName(i int) string { return fmt.Sprintf("m%05d", i) }

// updateConfigMap replaces the i-th configmap.
func updateConfigMap(t *testing.T, s *testapi.Server, i int) {
	t.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"one","labels":{"letter":"e"}},"data":{"at":%q}}`,
		configMapName(i), s.DB.Version())
	if _, err := s.Collection("configmaps").Replace(t.Context(), configMapKey(i), data); err != nil {
		t.Errorf("update %d: %v", i, err)
	}
}

// updateInBackground updates a few hundred configmaps per second until stop is called.
func updateInBackground(t *testing.T, s *testapi.Server) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(3 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				updateConfigMap(t, s, i%10000)
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

func configMapKey(i int) listwatch.Key {
	return listwatch.Key{Namespace: "one", Name: configMapName(i)}
}
