package adapters_test

import (
	"context"
	"fmt"
	"os"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
)

// This program tests a server that the command ./my-adapter starts and controls. The command reads
// requests as docs/conformance-hook.md describes.
func ExampleExecServer() {
	ctx := context.Background()
	p, err := adapters.ExecServer(ctx, "./my-adapter", os.Stderr, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	r, err := conformance.Execute(ctx, p.Target, conformance.Options{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.OK())
}
