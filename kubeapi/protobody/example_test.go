package protobody_test

import (
	"fmt"

	"github.com/listwatch/listwatch/kubeapi/protobody"
)

func ExampleToJSON() {
	body := "k8s\x00" + // the prefix of every body
		"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap" + // apiVersion and kind
		// metadata.name and one member of data
		"\x12\x11\x0a\x05\x0a\x03one\x12\x08\x0a\x01k\x12\x03val"
	json, err := protobody.ToJSON([]byte(body), 1<<20)
	fmt.Println(string(json), err)
	// Output:
	// {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one"},"data":{"k":"val"}} <nil>
}
