package strategicpatch_test

import (
	"fmt"

	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/strategicpatch"
)

func ExampleApply() {
	pod := schema.Kubernetes("io.k8s.api.core.v1.Pod")
	object := `{"spec":{"containers":[{"name":"web","image":"web:1"},{"name":"log","image":"log:1"}]}}`
	patch := `{"spec":{"containers":[{"name":"web","image":"web:2"}]}}`
	result, err := strategicpatch.Apply([]byte(object), []byte(patch), pod)
	fmt.Println(string(result), err)
	// Output:
	// {"spec":{"containers":[{"name":"web","image":"web:2"},{"name":"log","image":"log:1"}]}} <nil>
}
