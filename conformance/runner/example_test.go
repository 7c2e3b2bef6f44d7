package runner_test

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A case of your own runs against any target in every variant of every transport.
func ExampleExecute() {
	labels := harness.Case{
		ID: "mine/labels", Subject: harness.Server, Needs: harness.Writes,
		Rule: "a watch with a label selector receives no other objects",
		Run: func(e *harness.Env) {
			start := e.Put("before")
			w := e.Dial(harness.From(start) + "&" + harness.LabelSelector("wanted"))
			e.Put("without-label")
			e.Put("with-label", "wanted", "yes")
			w.Want("ADDED with-label")
		},
	}
	target := reference.New("reference", reference.Interceptors{})
	all := func(string) bool { return true }
	runner.Execute(context.Background(), labels, target, all, func(o runner.Outcome) {
		fmt.Println(o.Name(), o.Verdict)
	})
	// Output:
	// mine/labels/h1 pass
	// mine/labels/h1-standard pass
	// mine/labels/h2 pass
	// mine/labels/h2-nethttp pass
	// mine/labels/ws-native pass
	// mine/labels/ws-h2 pass
	// mine/labels/ws-gorilla pass
	// mine/labels/ws-nhooyr pass
}
