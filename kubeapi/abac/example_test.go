package abac_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/abac"
)

func ExamplePolicy_Authorize() {
	policy, err := abac.Read(strings.NewReader(`
# The group readers may read pods in all namespaces.
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"readers","namespace":"*","resource":"pods","readonly":true}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	api := kubeapi.Handler{Authorize: policy.Authorize}
	ada := kubeapi.User{Name: "ada", Groups: []string{"readers"}}
	for _, verb := range []string{"watch", "delete"} {
		// A Handler calls its Authorizer; this call stands for a request.
		err := api.Authorize(context.Background(), ada,
			kubeapi.Attributes{Verb: verb, Resource: kubeapi.DefaultResources()[0], Namespace: "default"})
		fmt.Println(verb, err)
	}
	// Output:
	// watch <nil>
	// delete no line of the policy allows it
}
