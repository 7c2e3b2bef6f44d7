package crd_test

import (
	"fmt"
	"os"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/store/memory"
)

func ExampleParse() {
	text, err := os.ReadFile("testdata/widgets.yaml")
	if err != nil {
		panic(err)
	}
	definitions, err := crd.Parse(text)
	if err != nil {
		panic(err)
	}
	db := memory.Open(memory.Options{})
	var api kubeapi.Handler
	for _, d := range definitions {
		c, err := db.Collection(d.CollectionSpec())
		if err != nil {
			panic(err)
		}
		if err := d.AddTo(&api, c); err != nil {
			panic(err)
		}
		fmt.Println(d.Path("default"))
		for _, part := range d.Ignored {
			fmt.Println(" ", part)
		}
	}
	// Output:
	// /apis/demo.example.com/v1/namespaces/default/widgets
	//   spec: the CEL rules of x-kubernetes-validations are not enforced
	//   spec.size: the default is not filled in
	//   spec.template: apiVersion, kind and metadata of the embedded resource are not validated
	//   version v1beta1 is not served, only version v1
	//   spec.conversion: the webhook is never called
	// /apis/demo.example.com/v1/gadgets
}
