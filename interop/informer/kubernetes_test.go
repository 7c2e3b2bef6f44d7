//go:build !race

package informer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/apiserver"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestInformersEndWithWhatAKubernetesServerHas(t *testing.T) {
	s := apiserver.Start(t)
	groups := 0
	for name, build := range builders {
		groups++
		r := widgets
		r.Group = fmt.Sprintf("group-%d.%s", groups, widgets.Group)
		t.Run(name, func(t *testing.T) {
			define(t, s.Config(), r)
			play(t, world{endpoint: endpoint{config: s.Config(), group: r.GroupVersion(), kind: "Widget"}}, r, build)
		})
	}
}

// define declares widgets in the group of r, and returns when they can be written to.
func define(t *testing.T, config *rest.Config, r schema.GroupVersionResource) {
	t.Helper()
	keep := true
	definition := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: r.Resource + "." + r.Group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: r.Group, Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: r.Resource, Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: r.Version, Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
				},
			}},
		},
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := objects.Resource(r).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s are not served: %v", r, err)
	}
}
