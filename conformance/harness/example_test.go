package harness_test

import (
	"fmt"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A case writes objects and checks the events that a watch of these objects receives. The runner
// passes an Env to the case for each variant in which the target can be tested.
func ExampleCase() {
	deletion := harness.Case{
		ID: "mine/deletion", Subject: harness.Server, Transports: "h2", Needs: harness.Writes,
		Rule: "a deletion is an event",
		Run: func(e *harness.Env) {
			start := e.Put("a")
			w := e.Dial(harness.From(start))
			e.Delete("a")
			w.Want("DELETED a")
		},
	}
	fmt.Println(deletion.Group(), deletion.Mode.Letters())
	fmt.Println(runner.Variants(deletion, reference.New("reference", reference.Interceptors{})))
	// Output:
	// mine r
	// [h2 h2-nethttp]
}
