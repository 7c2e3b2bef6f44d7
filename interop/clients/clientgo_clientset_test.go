package clients

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// newClientset returns a clientset with the configuration c.
func newClientset(t testing.TB, c *rest.Config) *kubernetes.Clientset {
	t.Helper()
	return testkit.Must(kubernetes.NewForConfig(c))(t)
}

// forEachProtocol runs a test over HTTP/1.1 and over HTTP/2.
func forEachProtocol(t *testing.T, test func(t *testing.T, p testapi.Protocol)) {
	for _, p := range []testapi.Protocol{testapi.HTTP1, testapi.HTTP2} {
		t.Run(string(p), func(t *testing.T) { test(t, p) })
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

// A requestRecorder keeps the requests of a client.
type requestRecorder struct {
	mu       sync.Mutex
	recorded []*http.Request // guarded by mu
}

// record adds the recorder to the transport of c, and returns c.
func (r *requestRecorder) record(c *rest.Config) *rest.Config {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.mu.Lock()
			r.recorded = append(r.recorded, request)
			r.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// requests returns the recorded requests whose path ends with suffix.
func (r *requestRecorder) requests(suffix string) []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.recorded), func(request *http.Request) bool {
		return !strings.HasSuffix(request.URL.Path, suffix)
	})
}

// signalFirstResponse returns a wrapper that closes done after the first response.
func signalFirstResponse(done chan struct{}) transport.WrapperFunc {
	var once sync.Once
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			once.Do(func() { close(done) })
			return response, err
		})
	}
}
