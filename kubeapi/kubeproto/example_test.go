package kubeproto_test

import (
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
)

// The bytes of an object are the body of a response to a get. An informer of such objects needs a
// Decode function, such as one that calls the decoder of client-go.
func ExampleEncoding() {
	body := "k8s\x00" + // the prefix of every body
		"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap" + // apiVersion and kind
		"\x12\x0b\x0a\x09\x0a\x03one\x32\x0212" // metadata.name and metadata.resourceVersion
	o, err := kubeproto.Encoding{}.Read([]byte(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	maps := listwatch.Description{APIVersion: "v1", Kind: "ConfigMap", Encoding: kubeproto.Encoding{}}
	fmt.Println(o.Key, o.Version)
	fmt.Printf("%q\n", maps.At(o, 13).Data[len(body)-13:])
	// Output:
	// one 12
	// "\x12\v\n\t\n\x03one2\x0213"
}
