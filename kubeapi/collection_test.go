package kubeapi

import (
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/collectiontest"
	"github.com/listwatch/listwatch/store/memory"
)

func TestCollectionWritesToKubernetesPaths(t *testing.T) {
	r := Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err != nil {
		t.Fatal(err)
	}
	var h Handler
	if err := h.Add(r, c); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&h)
	defer s.Close()
	for _, path := range []string{r.Path(""), r.Path("default")} {
		t.Run(path, func(t *testing.T) {
			remote := &client.Remote{URL: s.URL + path}
			defer remote.Close()
			collectiontest.Run(t, remote, "v1", "default")
		})
	}
}
