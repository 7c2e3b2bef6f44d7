package table_test

import (
	"fmt"
	"strings"

	"github.com/listwatch/listwatch/kubeapi/table"
)

func ExampleNew() {
	_, err := table.New([]table.Column{
		{Name: "Replicas", Type: "integer", Path: ".spec.replicas"},
		{Name: "Ready", Path: `.status.conditions[?(@.type=="Ready")].status`},
		table.AgeColumn(),
	})
	fmt.Println(err)
	_, err = table.New([]table.Column{{Name: "Replicas", Path: "spec.replicas"}})
	fmt.Println(strings.ReplaceAll(err.Error(), ": ", ":\n"))
	// Output:
	// <nil>
	// invalid:
	// column "Replicas":
	// JSON path "spec.replicas":
	// must start with a dot, as .spec.replicas does
}
