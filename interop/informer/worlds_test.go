package informer

import (
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	widgets    = schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "widgets"}
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// builders are the subjects, by what they make of an object.
var builders = map[string]func(*testing.T, endpoint, schema.GroupVersionResource) subject{
	"ours, a struct of ours":    newOurs[*widget],
	"ours, a kubebuilder type":  newOurs[*kubeWidget],
	"ours, unstructured":        newOurs[*unstructured.Unstructured],
	"client-go's, unstructured": newTheirs,
}

func TestInformersEndWithWhatOurServerHas(t *testing.T) {
	for name, build := range builders {
		for _, p := range kubetest.Protocols {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				t.Parallel()
				play(t, ourWorld(t, p, widgets, "Widget"), widgets, build)
			})
		}
	}
	t.Run("ours, a type of Kubernetes", func(t *testing.T) {
		t.Parallel()
		play(t, ourWorld(t, kubetest.HTTP2, configMaps, "ConfigMap"), configMaps, newOurs[*corev1.ConfigMap])
	})
}

func ourWorld(t *testing.T, p kubetest.Protocol, r schema.GroupVersionResource, kind string) world {
	t.Helper()
	s := kubetest.Start(t, "widgets.v1.demo.example.com=Widget")
	return world{
		endpoint: endpoint{config: s.Config(p), group: r.GroupVersion(), kind: kind},
		restart:  s.Restart,
		expire:   s.DB.Compact,
	}
}
