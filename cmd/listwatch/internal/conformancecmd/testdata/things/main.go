// Command things serves a collection at http://127.0.0.1:PORT/things, whose objects are at
// /things/NAMESPACE/NAME. The tests of conformance init use it.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func main() {
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		APIVersion: "example.com/v1", Kind: "Thing", Plural: "things", Namespaced: true,
	})
	if err == nil {
		h := &crudserver.Handler{Path: "/things", Collection: things}
		err = http.ListenAndServe("127.0.0.1:"+os.Args[1], h)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
