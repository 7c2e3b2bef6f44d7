package kubetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func Example() {
	// In a test, t is its *testing.T.
	t := &scope{TB: &testing.T{}}
	defer t.end()

	env := kubetest.New(t, kubetest.Options{CRDs: []string{"testdata/crds"}})
	clients, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "config-"}}
	if _, err := clients.CoreV1().ConfigMaps("default").Create(ctx, o, metav1.CreateOptions{}); err != nil {
		panic(err)
	}
	all, err := clients.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println(len(all.Items), "object in", all.Items[0].Namespace)

	// The next update fails, so the program under test must try again.
	env.Faults().Refuse(kubetest.Refusal{Status: 409, Verbs: []string{"update"}})
	// Output: 1 object in default
}
