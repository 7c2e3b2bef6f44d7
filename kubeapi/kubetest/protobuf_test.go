package kubetest_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
)

// Typed clients and informers read Protocol Buffers by default, so they see an object as from a
// cluster: without empty lists, and with canonical quantities.
func TestTypedClientsSeeObjectsOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := kubetest.New(t, kubetest.Options{})
		typed, err := kubernetes.NewForConfig(env.Config())
		if err != nil {
			t.Fatal(err)
		}
		pods := typed.CoreV1().Pods("default")
		created, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{}, Containers: []corev1.Container{{
				Name: "c", Image: "i", Ports: []corev1.ContainerPort{},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")},
				},
			}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		factory := informers.NewSharedInformerFactory(typed, 0)
		lister := factory.Core().V1().Pods().Lister()
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
		cached, err := lister.Pods("default").Get("a")
		if err != nil {
			t.Fatal(err)
		}
		listed, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(listed.Items) != 1 {
			t.Fatalf("got %d pods, %v; want one", len(listed.Items), err)
		}
		all := map[string]*corev1.Pod{"created": created, "cached": cached, "listed": &listed.Items[0]}
		for what, pod := range all {
			c := pod.Spec.Containers[0]
			if pod.Spec.Tolerations != nil || c.Ports != nil {
				t.Errorf("%s: got empty lists, want nil", what)
			}
			if cpu := c.Resources.Requests[corev1.ResourceCPU]; cpu.String() != "1" {
				t.Errorf("%s: got %s CPU, want 1", what, cpu.String())
			}
			if pod.Kind != "" {
				t.Errorf("%s: got kind %q, want none", what, pod.Kind)
			}
		}
		partial, err := metadata.NewForConfig(env.Config())
		if err != nil {
			t.Fatal(err)
		}
		m, err := partial.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("default").
			Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || m.UID != created.UID {
			t.Errorf("got %v, %v; want the metadata of the pod", m, err)
		}
	})
}
