package freshness_test

import (
	"fmt"

	"github.com/listwatch/listwatch/kubeapi/freshness"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

func ExampleNewClient() {
	// With a manager, NewClient belongs into manager.Options.
	config := &rest.Config{Host: "https://example.com"}
	c, err := cluster.New(config, func(o *cluster.Options) { o.NewClient = freshness.NewClient })
	if err != nil {
		panic(err)
	}
	fmt.Println(c.GetClient() != nil)
	// Output: true
}
