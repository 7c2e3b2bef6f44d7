//go:build !race

package suites

import (
	"os"
	"slices"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// BenchmarkFirstList measures the time from the start of a server to its first list.
func BenchmarkFirstList(b *testing.B) {
	servers := map[string]func(testing.TB) *rest.Config{
		"kubetest": func(t testing.TB) *rest.Config {
			return kubetest.New(t,
				kubetest.Options{}).Config()
		},
		"apiextensions-apiserver": func(t testing.TB) *rest.Config { return apiserver.Start(t).Config() },
	}
	if path := os.Getenv(apiServer); path != "" {
		servers["kube-apiserver"] = func(t testing.TB) *rest.Config {
			c, err := clientcmd.BuildConfigFromFlags("", kubeapiserver.Start(t, path))
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	for name, start := range servers {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				t := &scope{TB: b}
				client, err := dynamic.NewForConfig(start(t))
				if err == nil {
					_, err = client.Resource(definitionResource).List(b.Context(), metav1.ListOptions{})
				}
				b.StopTimer()
				t.end()
				b.StartTimer()
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A scope is a testing.TB whose cleanups run before the benchmark ends.
type scope struct {
	testing.TB
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}
