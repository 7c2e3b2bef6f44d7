package kubetest_test

import (
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
)

func TestRoleFilesDecideWhatTheManagerMayDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := kubetest.New(t, kubetest.Options{
			CRDs:    []string{"testdata/crds"},
			Objects: []string{"testdata/rbac/role.yaml", "testdata/rbac/role_binding.yaml"},
		})
		manager := env.ConfigFor("system:serviceaccount:system:controller-manager")
		configMaps := testkit.Must(kubernetes.NewForConfig(manager))(t).CoreV1().ConfigMaps("default")
		if _, err := configMaps.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named("a")}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("got %v from a request that the role does not allow", err)
		}
	})
}

// file returns the path of a file with the documents in text.
func file(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOneFileServesAllOptions(t *testing.T) {
	definitions := testkit.Must(os.ReadFile("testdata/crds/widgets.yaml"))(t)
	path := file(t, string(definitions)+`
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: one}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: one}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: one}}
---
{apiVersion: demo.example.com/v1, kind: Widget, metadata: {name: a}, spec: {color: red}}
`)
	paths := []string{path}
	inBubble(t, func(t *testing.T, c *cluster) {
		testkit.Must(c.CoreV1().ServiceAccounts("one").Get(t.Context(), "a", metav1.GetOptions{}))(t)
		widgets := c.builtIn("demo.example.com", "v1", "widgets", "default")
		testkit.Must(widgets.Get(t.Context(), "a", metav1.GetOptions{}))(t)
		testkit.Must(c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "one",
			metav1.GetOptions{}))(t)
	}, kubetest.Options{CRDs: paths, Objects: paths, Webhooks: paths})
}

func TestObjectsOfUnknownKindsAreReported(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: cert-manager.io/v1, kind: Issuer}": `no kind "Issuer" in version "cert-manager.io/v1"`,
		"resources: [role.yaml]":                         `no kind "" in version ""`,

		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: one}}": `namespaces "one" not found`,
	} {
		l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		path := file(t, text)
		err := kubetest.Serve(t.Context(), l, filepath.Join(t.TempDir(), "kubeconfig"),
			kubetest.Options{Objects: []string{path}}, log.New(io.Discard, "", 0), func() {})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
		_ = l.Close()
	}
}
