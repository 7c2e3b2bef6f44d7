package robustness_test

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch/conformance/robustness"
)

// This program injects faults for at least a second. A longer run also prints the checker's
// summary: r.Report.Summary.
func ExampleRun() {
	r, err := robustness.Run(context.Background(), robustness.Options{MinDuration: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.OK(), r.Failures, r.Report.Violations)
	// Output: true [] []
}
