package store_test

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A collection of JSON objects, with a field selector and a conditional write.
func ExampleCollection() {
	ctx := context.Background()
	pods, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		Kind: "Pod", Namespaced: true, Fields: []string{"spec.nodeName"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	pod, err := pods.Create(ctx,
		[]byte(`{"metadata": {"name": "web", "namespace": "prod"}, "spec": {"nodeName": "n1"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}

	onNode1, err := listwatch.ParseFieldSelector("spec.nodeName=n1")
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := pods.List(ctx, listwatch.Query{Selection: listwatch.Selection{Fields: onNode1}})
	fmt.Println(len(page.Items), "pod on n1,", err)

	// The version is stale after another write, so the delete fails.
	moved := []byte(`{"metadata": {"name": "web"}, "spec": {"nodeName": "n2"}}`)
	if _, err := pods.Replace(ctx, pod.Key, moved); err != nil {
		fmt.Println(err)
	}
	_, err = pods.Delete(ctx, pod.Key, listwatch.Preconditions{Version: pod.Version})
	fmt.Println(listwatch.CodeOf(err))

	_, err = pods.Create(ctx, []byte(`{"metadata": {"name": "Web!"}}`))
	for _, cause := range listwatch.AsError(err).Details.Causes {
		fmt.Println(cause.Reason, cause.Field)
	}
	// Output:
	// 1 pod on n1, <nil>
	// conflict
	// FieldValueInvalid metadata.name
	// FieldValueRequired metadata.namespace
}

// A Flag is a Go type whose values can be stored.
type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}
