package adapters_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

type flag struct {
	listwatch.Metadata `json:"metadata"`
}

// This program runs a group of cases against a URL. Any URL that serves lists and watches can be
// tested in this way.
func ExampleURL() {
	server := httptest.NewServer(&watchserver.Server{Source: memory.New[flag]()})
	defer server.Close()
	ctx := context.Background()
	target, err := adapters.URL(ctx, server.URL, adapters.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	target.Variants = []string{"h1"}
	r, err := conformance.Execute(ctx, target, conformance.Options{Run: []string{"handshake"}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(r.Outcomes) > 0, r.OK())
	// Output: true true
}
