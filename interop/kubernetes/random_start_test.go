//go:build !race

package kubernetes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/store/memory"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

const definitionsFile = "testdata/definitions.yaml"

// startOurs starts a server of package kubeapi with the definitions.
func startOurs(t *testing.T) *comparedServer {
	t.Helper()
	text, err := os.ReadFile(definitionsFile)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crd.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	db, h := memory.Open(memory.Options{}), &kubeapi.Handler{}
	for _, d := range definitions {
		c, err := db.Collection(d.CollectionSpec())
		if err == nil {
			err = d.AddTo(h, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() { _ = h.Drain(context.Background()); s.Close() })
	return &comparedServer{name: "ours", url: s.URL, client: s.Client()}
}

// startKubernetes starts a Kubernetes API server with the definitions.
func startKubernetes(t *testing.T) *comparedServer {
	t.Helper()
	return serveDefinitions(t, apiserver.Start(t))
}

// startRelayed starts a Kubernetes API server with the definitions, and a relay of it. The requests
// go to the relay.
func startRelayed(t *testing.T) *comparedServer {
	t.Helper()
	s := apiserver.Start(t)
	serveDefinitions(t, s)
	relay := startRelay(t, program.Build(t), ports.Address(t), writeKubeconfig(t, s), "--cluster")
	transport, err := rest.TransportFor(relay.userConfig(s.Token))
	if err != nil {
		t.Fatal(err)
	}
	return &comparedServer{name: "relayed", url: relay.URL(), client: &http.Client{Transport: transport}}
}

// serveDefinitions adds the definitions to s.
func serveDefinitions(t *testing.T, s *apiserver.Server) *comparedServer {
	t.Helper()
	transport, err := rest.TransportFor(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientset.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	k := &comparedServer{name: "Kubernetes", url: s.URL, client: &http.Client{Transport: transport}}
	for _, c := range readDefinitions(t) {
		if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), &c,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		k.begin()
		// The server refuses creates for some seconds after it has begun to serve lists of a new
		// resource.
		plural := c.Spec.Names.Plural
		eventually(t, "creating "+plural, func() bool {
			a, err := k.send(t.Context(), request{
				method: "POST", path: collectionPath(plural, "first"), contentType: jsonType,
				body: newObject(plural, "first", "first").text(),
			})
			return err == nil && a.code == http.StatusCreated
		})
	}
	if err := k.clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// readDefinitions returns the definitions that both servers have.
func readDefinitions(t *testing.T) (all []apiextensions.CustomResourceDefinition) {
	t.Helper()
	f, err := os.Open(definitionsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := utilyaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var c apiextensions.CustomResourceDefinition
		err := d.Decode(&c)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
}
