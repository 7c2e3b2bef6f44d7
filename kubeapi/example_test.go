package kubeapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/memory"
)

func ExampleHandler() {
	widgets, err := kubeapi.ParseResource("widgets.v1.demo.example.com=Widget")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := memory.Open(memory.Options{}).Collection(widgets.CollectionSpec())
	if err != nil {
		fmt.Println(err)
		return
	}
	var api kubeapi.Handler
	if err := api.Add(widgets, c); err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(&api)
	defer server.Close()

	url := server.URL + "/apis/demo.example.com/v1/namespaces/default/widgets"
	res, err := http.Post(url, "application/json", strings.NewReader(`{"metadata":{"name":"one"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	fmt.Println(res.Status, string(body[:36]), err)
	// Output: 201 Created {"kind":"Widget","apiVersion":"demo. <nil>
}
