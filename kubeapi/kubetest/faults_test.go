package kubetest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

func TestRefusalsConcernTheirRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		api := c.CoreV1().ConfigMaps("default")
		c.Faults().Refuse(kubetest.Refusal{
			Status: 409, Verbs: []string{"update"}, Resources: []string{"configmaps"},
			Times: 2,
		})
		tries := 0
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			tries++
			_, err := api.Update(t.Context(), a, metav1.UpdateOptions{})
			return err
		})
		if err != nil || tries != 3 {
			t.Errorf("got %v after %d tries, want success at the third", err, tries)
		}
		c.Faults().Refuse(kubetest.Refusal{Status: 429})
		start := time.Now()
		if got := c.configMaps(t); len(got) != 1 || time.Since(start) != time.Second {
			t.Errorf("got %q after %v, want the client to wait for the time in Retry-After", got, time.Since(start))
		}
		c.Faults().Refuse(kubetest.Refusal{Status: 503, Times: -1})
		if _, err := api.Create(t.Context(), a, metav1.CreateOptions{}); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("got %v, want status 503", err)
		}
		c.Faults().Stop()
		if got := c.configMaps(t); len(got) != 1 {
			t.Errorf("got %q after Stop", got)
		}
	})
}

// next returns the next event of w.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	e, ok := <-w.ResultChan()
	if !ok {
		t.Fatal("the watch has ended")
	}
	return e
}

func TestExpiryForcesAList(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		api := c.CoreV1().ConfigMaps("default")
		old := c.createConfigMap(t, named("a")).ResourceVersion
		c.createConfigMap(t, named("b"))
		at := metav1.ListOptions{ResourceVersion: old}
		w := testkit.Must(api.Watch(t.Context(), at))(t)
		if e := next(t, w); e.Type != watch.Added {
			t.Fatalf("got %v", e)
		}
		c.Faults().ExpireHistory()
		if e := next(t, w); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			t.Errorf("got %v, want the watch to end with status 410", e)
		}
		if w, err := api.Watch(t.Context(), at); err == nil {
			if e := next(t, w); e.Type != watch.Error {
				t.Errorf("got %v from an expired version", e)
			}
		}
	})
}

func TestStaleReadsShowThePast(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := range 5 {
			c.createConfigMap(t, named(fmt.Sprint("n", i)))
		}
		c.Faults().StaleReads(2)
		cached := testkit.Must(c.CoreV1().ConfigMaps("default").List(t.Context(),
			metav1.ListOptions{ResourceVersion: "0"}))(t)
		if n := len(cached.Items); n != 3 {
			t.Errorf("got %d objects, want the 3 before the last two writes", n)
		}
		if n := len(c.configMaps(t)); n != 5 {
			t.Errorf("got %d objects from a consistent read, want 5", n)
		}
	})
}

// An informer sees every object although the server fails at random, and again with the same seed.
func TestInformersSurviveChaos(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		factory := informers.NewSharedInformerFactory(c, 0)
		informer := factory.Core().V1().ConfigMaps().Informer()
		stop := make(chan struct{})
		factory.Start(stop)
		defer factory.Shutdown()
		defer close(stop)
		if !cache.WaitForCacheSync(stop, informer.HasSynced) {
			t.Fatal("the informer did not sync")
		}
		c.Faults().Start(1, kubetest.Chaos{
			TooManyRequests: 0.1, Unavailable: 0.1, Cut: 0.2, Expire: 0.1, Delay: 0.2,
			MaxDelay: time.Second,
		})
		const objects = 100
		for i := range objects {
			o := &corev1.ConfigMap{ObjectMeta: named(fmt.Sprint("n", i))}
			err := retry.OnError(retry.DefaultBackoff, func(error) bool { return true }, func() error {
				_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), o, metav1.CreateOptions{})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(informer.GetStore().List()); n != objects {
			t.Errorf("the informer has %d objects, want %d", n, objects)
		}
	})
}

// TestFaultsIgnoreTheOrderOfRequests sends the same requests in two orders. A failed test logs the
// faults.
func TestFaultsIgnoreTheOrderOfRequests(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	var runs [2][]string
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			r := &failedRecord{record{TB: t}}
			s := &scope{TB: r}
			c := start(s, kubetest.Options{})
			c.Faults().Start(7, kubetest.Chaos{Conflict: 0.5})
			for n := range 80 {
				name := names[n%4]
				if i == 1 {
					name = names[n/20]
				}
				_, _ = c.CoreV1().ConfigMaps("default").Update(t.Context(),
					&corev1.ConfigMap{ObjectMeta: named(name)}, metav1.UpdateOptions{})
			}
			s.end()
			runs[i] = strings.Split(strings.Join(r.texts, "\n"), "\n")
			slices.Sort(runs[i])
		})
	}
	isUpdate := func(s string) bool { return strings.HasPrefix(s, "update configmaps default/a") }
	if !slices.Equal(runs[0], runs[1]) || len(runs[0]) < 20 || !slices.ContainsFunc(runs[0], isUpdate) {
		t.Errorf("got the faults %q and then %q, want the same", runs[0], runs[1])
	}
}

// A record is a testing.TB that keeps what is logged.
type record struct {
	testing.TB
	texts []string
}

func (r *record) Logf(format string, args ...any) {
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

// A failedRecord is the record of a test that has failed.
type failedRecord struct{ record }

func (failedRecord) Failed() bool { return true }
