package clients

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// configMapListWatch lists and watches the configmaps of namespace one.
func configMapListWatch(t *testing.T, s *testapi.Server, p testapi.Protocol) *cache.ListWatch {
	t.Helper()
	return listWatchIn(t, s.Config(p), "one")
}

func listWatchIn(t *testing.T, c *rest.Config, namespace string) *cache.ListWatch {
	t.Helper()
	return cache.NewListWatchFromClient(newClientset(t, c).CoreV1().RESTClient(), "configmaps", namespace,
		fields.Everything())
}

// A RetryWatcher returns every write once and in order, even if the connection is cut repeatedly.
func TestRetryWatcherSeesEachWriteOnce(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		t.Parallel()
		s := testapi.Start(t)
		createConfigMaps(t, s, 1)
		w := testkit.Must(watchtools.NewRetryWatcherWithContext(t.Context(), s.DB.Version().String(),
			configMapListWatch(t, s, p)))(t)
		defer w.Stop()
		var want, got []string
		for i := range 300 {
			updateConfigMap(t, s, 0)
			want = append(want, s.DB.Version().String())
			if i%100 == 50 {
				s.Cut()
			}
			if i%4 > 0 { // the reader lags, so events are in transit when the connection is cut
				got = append(got, nextModified(t, w))
			}
		}
		for len(got) < len(want) {
			got = append(got, nextModified(t, w))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the versions differ (-written +watched):\n%s", diff)
		}
	})
}

// nextModified returns the version of the next event, which must be MODIFIED.
func nextModified(t *testing.T, w watch.Interface) string {
	t.Helper()
	e := <-w.ResultChan()
	if e.Type != watch.Modified {
		t.Fatalf("got %v, want MODIFIED", e)
	}
	return e.Object.(*corev1.ConfigMap).ResourceVersion
}

// If the history is lost, a RetryWatcher returns an error event and ends.
func TestRetryWatcherEndsAfterCompaction(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t)
	createConfigMaps(t, s, 1)
	w := testkit.Must(watchtools.NewRetryWatcherWithContext(t.Context(), s.DB.Version().String(),
		configMapListWatch(t, s, testapi.HTTP1)))(t)
	updateConfigMap(t, s, 0)
	nextModified(t, w)
	s.Restart(func() {
		updateConfigMap(t, s, 0)
		updateConfigMap(t, s, 0)
		s.DB.Compact()
	})
	e := <-w.ResultChan()
	if e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("got %v, want ERROR with an expired version", e)
	}
	<-w.Done()
}

// watchtools.Until uses a RetryWatcher, and watchtools.UntilWithSync an informer. Both functions
// see the changes after a cut connection.
func TestUntilSurvivesCuts(t *testing.T) {
	t.Parallel()
	type until func(ctx context.Context, start string, lw *cache.ListWatch,
		c watchtools.ConditionFunc) (*watch.Event, error)
	for name, wait := range map[string]until{
		"Until": func(ctx context.Context, start string, lw *cache.ListWatch, c watchtools.ConditionFunc) (*watch.Event,
			error,
		) {
			return watchtools.Until(ctx, start, lw, c)
		},
		"UntilWithSync": func(ctx context.Context, _ string, lw *cache.ListWatch,
			c watchtools.ConditionFunc,
		) (*watch.Event, error) {
			synced := func(store cache.Store) (bool, error) {
				if n := len(store.ListKeys()); n != 3 {
					return false, fmt.Errorf("synced with %d objects, want 3", n)
				}
				return false, nil
			}
			return watchtools.UntilWithSync(ctx, lw, &corev1.ConfigMap{}, synced, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testapi.Start(t)
			createConfigMaps(t, s, 3)
			start := s.DB.Version().String()
			updateConfigMap(t, s, 0)
			seen := 0
			e, err := wait(t.Context(), start, configMapListWatch(t, s, testapi.HTTP2),
				func(e watch.Event) (bool, error) {
					if o := e.Object.(*corev1.ConfigMap); o.Labels["letter"] != "e" || o.Name != configMapName(seen) {
						// This is the initial state, or an object that the informer has listed
						// again.
						return false, nil
					}
					if seen++; seen < 3 {
						s.Cut()
						updateConfigMap(t, s, seen)
					}
					return seen == 3, nil
				})
			if err != nil || e.Object.(*corev1.ConfigMap).Name != configMapName(2) {
				t.Errorf("got %v, %v, want a change of %s", e, err, configMapName(2))
			}
		})
	}
}
