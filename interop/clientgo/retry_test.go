package clientgo

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// listWatch follows the configmaps of namespace one.
func listWatch(t *testing.T, s *kubetest.Server, p kubetest.Protocol) *cache.ListWatch {
	t.Helper()
	return listWatchIn(t, s.Config(p), "one")
}

func listWatchIn(t *testing.T, c *rest.Config, namespace string) *cache.ListWatch {
	t.Helper()
	return cache.NewListWatchFromClient(typed(t, c).CoreV1().RESTClient(), "configmaps", namespace, fields.Everything())
}

// What a RetryWatcher shows is every write once, in order, however often the connection is cut.
func TestRetryWatchersLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, p kubetest.Protocol) {
		t.Parallel()
		s := kubetest.Start(t)
		fill(t, s, 1)
		w := must(watchtools.NewRetryWatcherWithContext(t.Context(), s.DB.Version().String(), listWatch(t, s, p)))(t)
		defer w.Stop()
		var want, got []string
		for i := range 300 {
			update(t, s, 0)
			want = append(want, s.DB.Version().String())
			if i%100 == 50 {
				s.Cut()
			}
			if i%4 > 0 { // the reader lags, so that the cuts find events on their way
				got = append(got, next(t, w))
			}
		}
		for len(got) < len(want) {
			got = append(got, next(t, w))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("versions (-written +watched):\n%s", diff)
		}
	})
}

// next returns the version of the next event, which must be a change.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	e := <-w.ResultChan()
	if e.Type != watch.Modified {
		t.Fatalf("got %v, want MODIFIED", e)
	}
	return e.Object.(*corev1.ConfigMap).ResourceVersion
}

// Where the history is gone, a RetryWatcher says so and ends.
func TestRetryWatchersEndWithTheHistory(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	fill(t, s, 1)
	w := must(watchtools.NewRetryWatcherWithContext(t.Context(), s.DB.Version().String(), listWatch(t, s, kubetest.HTTP1)))(t)
	update(t, s, 0)
	next(t, w)
	s.Restart(func() {
		update(t, s, 0)
		update(t, s, 0)
		s.DB.Compact()
	})
	e := <-w.ResultChan()
	if e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("got %v, want ERROR of an expired version", e)
	}
	<-w.Done()
}

// Until follows with a RetryWatcher, UntilWithSync with an informer; both see what happens after the connection was cut. (ListWatchUntil
// is gone from client-go.)
func TestUntilSeesThroughCuts(t *testing.T) {
	t.Parallel()
	type until func(ctx context.Context, start string, lw *cache.ListWatch, c watchtools.ConditionFunc) (*watch.Event, error)
	for name, wait := range map[string]until{
		"Until": func(ctx context.Context, start string, lw *cache.ListWatch, c watchtools.ConditionFunc) (*watch.Event, error) {
			return watchtools.Until(ctx, start, lw, c)
		},
		"UntilWithSync": func(ctx context.Context, _ string, lw *cache.ListWatch, c watchtools.ConditionFunc) (*watch.Event, error) {
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
			s := kubetest.Start(t)
			fill(t, s, 3)
			start := s.DB.Version().String()
			update(t, s, 0)
			seen := 0
			e, err := wait(t.Context(), start, listWatch(t, s, kubetest.HTTP2), func(e watch.Event) (bool, error) {
				if o := e.Object.(*corev1.ConfigMap); o.Labels["letter"] != "e" || o.Name != nameOf(seen) {
					return false, nil // as it was at first, or what an informer shows again after a list
				}
				if seen++; seen < 3 {
					s.Cut()
					update(t, s, seen)
				}
				return seen == 3, nil
			})
			if err != nil || e.Object.(*corev1.ConfigMap).Name != nameOf(2) {
				t.Errorf("got %v, %v, want a change of %s", e, err, nameOf(2))
			}
		})
	}
}
