package freshness_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/kubeapi/freshness"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// inBubble calls run with a client of an Env whose cache has synced, in fake time.
func inBubble(
	t *testing.T, newClient client.NewClientFunc, o cache.Options, run func(t *testing.T, env *kubetest.Env, c client.Client),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		env := kubetest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reads, err := cache.New(env.Config(), o)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- reads.Start(ctx) }()
		if _, err := reads.GetInformer(ctx, &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		c, err := newClient(env.Config(), client.Options{Cache: &client.CacheOptions{Reader: reads}})
		if err != nil {
			t.Fatal(err)
		}
		run(t, env, c)
		env.Faults().Stop()
		cancel()
		<-done
	})
}

// staleReads updates a config map 500 times, and creates and deletes others, with a cache that
// lags. It returns the number of reads that lack the last write.
func staleReads(t *testing.T, env *kubetest.Env, c client.Client) (stale int) {
	key := client.ObjectKey{Namespace: "default", Name: "counter"}
	counter := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := c.Create(t.Context(), counter); err != nil {
		t.Fatal(err)
	}
	env.Faults().DelayReads(50 * time.Millisecond)
	for n := range 500 {
		counter.Data = map[string]string{"n": strconv.Itoa(n)}
		if err := c.Update(t.Context(), counter); err != nil {
			t.Fatal(err)
		}
		var got corev1.ConfigMap
		if err := c.Get(t.Context(), key, &got); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if got.Data["n"] != counter.Data["n"] {
			stale++
		}
		if n%10 != 0 {
			continue
		}
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
		if err := c.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{2, 1} {
			var all corev1.ConfigMapList
			if err := c.List(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			if len(all.Items) != want {
				stale++
			}
			if want == 2 {
				if err := c.Delete(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return stale
}

func TestReadsContainOwnWrites(t *testing.T) {
	inBubble(t, freshness.NewClient, cache.Options{}, func(t *testing.T, env *kubetest.Env, c client.Client) {
		if n := staleReads(t, env, c); n != 0 {
			t.Errorf("%d reads lack the last write", n)
		}
	})
}

// The test above proves something only if this one sees old states.
func TestReadsWithoutFreshnessAreStale(t *testing.T) {
	inBubble(t, client.New, cache.Options{}, func(t *testing.T, env *kubetest.Env, c client.Client) {
		if staleReads(t, env, c) == 0 {
			t.Error("all reads contain the last write, although the cache lags")
		}
	})
}

// The cache receives no event for an object that its selectors exclude.
func TestExcludedWritesEndAtTheLimit(t *testing.T) {
	o := cache.Options{DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	inBubble(t, freshness.NewClient, o, func(t *testing.T, _ *kubetest.Env, c client.Client) {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if err := c.Create(t.Context(), m, client.DisableReadYourWritesConsistency); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
			t.Errorf("a write without consistency: got %v, want that the cache lacks it", err)
		}
		if err := c.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m)
		if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "own writes after 10s") || time.Since(started) != freshness.DefaultLimit {
			t.Errorf("a write with consistency: got %v after %v, want a timeout", err, time.Since(started))
		}
	})
}

// While the cache cannot follow the API server, a read after a write fails. It never returns the
// old state.
func TestReadsFailDuringAnOutage(t *testing.T) {
	inBubble(t, freshness.NewClient, cache.Options{}, func(t *testing.T, env *kubetest.Env, c client.Client) {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if err := c.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		env.Faults().Refuse(kubetest.Refusal{
			Verbs: []string{"list", "watch"}, Status: http.StatusServiceUnavailable, Times: -1,
		})
		env.Faults().CutWatches()
		m.Data = map[string]string{"n": "1"}
		if err := c.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		var got corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), &got); !apierrors.IsTimeout(err) {
			t.Errorf("during the outage: got %v, want a timeout", err)
		}
		env.Faults().Stop()
		err := c.Get(t.Context(), client.ObjectKeyFromObject(m), &got)
		for began := time.Now(); apierrors.IsTimeout(err) && time.Since(began) < time.Minute; {
			err = c.Get(t.Context(), client.ObjectKeyFromObject(m), &got)
		}
		if err != nil || got.Data["n"] != "1" {
			t.Errorf("after the outage: got %v, %v, want the write", got.Data, err)
		}
	})
}
