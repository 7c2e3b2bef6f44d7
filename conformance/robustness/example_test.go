package robustness_test

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch/conformance/robustness"
)

// This program injects faults for at least a second. After a longer run, a program would also print
// the checker's summary, which is r.Report.Summary.
func ExampleRun() {
	r, err := robustness.Run(context.Background(), robustness.Options{MinDuration: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.OK(), r.Failures, r.Report.Violations)
	// Output: true [] []
}
