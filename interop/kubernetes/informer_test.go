package kubernetes

import (
	"testing"

	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	widgetGVR    = schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "widgets"}
	configMapGVR = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// informerBuilders maps subtest names to functions that create informers.
var informerBuilders = map[string]func(*testing.T, serverEndpoint, schema.GroupVersionResource) testedInformer{
	"ours, plain type":          newOurInformer[*plainWidget],
	"ours, Kubernetes' style":   newOurInformer[*kubeWidget],
	"ours, unstructured":        newOurInformer[*unstructured.Unstructured],
	"client-go's, unstructured": newClientGoInformer,
}

func TestInformersFollowOurServer(t *testing.T) {
	for name, build := range informerBuilders {
		for _, p := range testapi.Protocols {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				t.Parallel()
				runScenario(t, startOurServer(t, p, widgetGVR, "Widget"), widgetGVR, build)
			})
		}
	}
	t.Run("ours, Kubernetes' type", func(t *testing.T) {
		t.Parallel()
		runScenario(t, startOurServer(t, testapi.HTTP2, configMapGVR, "ConfigMap"), configMapGVR,
			newOurInformer[*corev1.ConfigMap])
	})
}

func startOurServer(t *testing.T, p testapi.Protocol, r schema.GroupVersionResource, kind string) scenarioServer {
	t.Helper()
	s := testapi.Start(t, "widgets.v1.demo.example.com=Widget")
	return scenarioServer{
		serverEndpoint: serverEndpoint{config: s.Config(p), group: r.GroupVersion(), kind: kind},
		restart:        s.Restart,
		expire:         s.DB.Compact,
	}
}
