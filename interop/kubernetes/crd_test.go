//go:build !race

package kubernetes

import (
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/listwatch/listwatch/internal/testkit"
)

// createCRD defines a namespaced custom resource without a schema, and waits until it is served.
func createCRD(t *testing.T, c *rest.Config, r schema.GroupVersionResource, kind string) {
	t.Helper()
	keep := true
	crd := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: r.Resource + "." + r.Group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: r.Group, Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{
				Plural: r.Resource, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
				ShortNames: []string{r.Resource[:2]},
			},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: r.Version, Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
				},
			}},
		},
	}
	client, err := clientset.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	objects := newDynamicClient(t, c).Resource(r)
	eventually(t, "discovery of "+r.Resource, func() bool {
		_, err := objects.List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

func newDynamicClient(t *testing.T, c *rest.Config) dynamic.Interface {
	t.Helper()
	return testkit.Must(dynamic.NewForConfig(c))(t)
}
