//go:build !race

package suites

import (
	"testing"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestManagerRunsInGinkgo(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "managers on kubetest")
}

var _ = Describe("a manager", func() {
	var c client.Client

	BeforeEach(func() {
		env := kubetest.New(GinkgoTB(), kubetest.Options{})
		m := newManager(GinkgoTB(), env)
		env.Run(m) // until the end of the spec
		c = m.GetClient()
	})

	It("gives each config map a secret", func(ctx SpecContext) {
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		Expect(c.Create(ctx, owner)).To(Succeed())
		Eventually(func() error {
			return c.Get(ctx, client.ObjectKeyFromObject(owner), &corev1.Secret{})
		}).Should(Succeed())
	})
})
