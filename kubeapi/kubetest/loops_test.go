package kubetest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A failure is a testing.TB that keeps the errors instead of failing.
type failure struct {
	testing.TB
	texts []string
}

func (f *failure) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

func (f *failure) FailNow() { runtime.Goexit() }

func TestLoopsWithoutAPauseAreNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failure{TB: t}
		c := testkit.Must(kubernetes.NewForConfig(kubetest.New(f, kubetest.Options{}).Config()))(t)
		for start := time.Now(); time.Since(start) == 0; {
			_, _ = c.CoreV1().ConfigMaps("default").Get(t.Context(), "absent", metav1.GetOptions{})
		}
		if len(f.texts) != 1 || !strings.Contains(f.texts[0], "GET /api/v1/namespaces/default/configmaps/absent") {
			t.Errorf("got the errors %q, want one that names the request", f.texts)
		}
	})
}

// TestCollectionTakesTime creates a dependent of a deleted owner each time that it was deleted, as
// a controller with a stale cache does.
func TestCollectionTakesTime(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		c.deleteConfigMap(t, "a", "")
		w := testkit.Must(c.CoreV1().ConfigMaps("default").Watch(t.Context(),
			metav1.ListOptions{FieldSelector: "metadata.name=x"}))(t)
		defer w.Stop()
		creates := 0
		for start := time.Now(); time.Since(start) < 100*time.Millisecond; creates++ {
			o := &corev1.ConfigMap{ObjectMeta: named("x", ownedBy(a))}
			testkit.Must(c.CoreV1().ConfigMaps("default").Create(t.Context(), o, metav1.CreateOptions{}))(t)
			<-w.ResultChan() // ADDED
			<-w.ResultChan() // DELETED
		}
		if creates > 200 {
			t.Errorf("%d creates in 100 ms, want time to pass", creates)
		}
	})
}
