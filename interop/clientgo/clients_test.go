package clientgo

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// typed returns the clientset of a configuration.
func typed(t testing.TB, c *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// overEach runs test over HTTP/1.1 and HTTP/2.
func overEach(t *testing.T, test func(t *testing.T, p kubetest.Protocol)) {
	for _, p := range []kubetest.Protocol{kubetest.HTTP1, kubetest.HTTP2} {
		t.Run(string(p), func(t *testing.T) { test(t, p) })
	}
}

// must returns v to the test, which an error fails.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}}},
	}
}

func configMap(name string, labels, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: data}
}

// A recorder keeps what a client asks for.
type recorder struct {
	mu   sync.Mutex
	seen []*http.Request // guarded by mu
}

// wrap makes c tell the recorder, and returns it.
func (r *recorder) wrap(c *rest.Config) *rest.Config {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.mu.Lock()
			r.seen = append(r.seen, request)
			r.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// requests returns those so far whose path ends with suffix.
func (r *recorder) requests(suffix string) []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.seen), func(request *http.Request) bool {
		return !strings.HasSuffix(request.URL.Path, suffix)
	})
}

// signalAfter closes done when the first request is answered.
func signalAfter(done chan struct{}) transport.WrapperFunc {
	var once sync.Once
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			once.Do(func() { close(done) })
			return answer, err
		})
	}
}
