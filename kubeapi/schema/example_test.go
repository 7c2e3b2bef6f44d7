package schema_test

import (
	"fmt"

	"github.com/listwatch/listwatch/kubeapi/schema"
)

func ExampleType_Check() {
	widget := &schema.Type{Fields: map[string]schema.Field{
		"spec": {Type: &schema.Type{Fields: map[string]schema.Field{
			"replicas": {Scalar: schema.Int32},
		}}},
	}}
	fmt.Println(widget.Check([]byte(`{"spec":{"replicas":3},"other":true}`)))
	fmt.Println(widget.Check([]byte(`{"spec":{"replicas":"3"}}`)))
	// Output:
	// [other] <nil>
	// [] invalid: spec.replicas: want a 32-bit integer, got "3"
}
