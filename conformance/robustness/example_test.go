package robustness_test

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch/conformance/robustness"
)

// This program injects faults for at least ten seconds and prints the checker's summary.
func ExampleRun() {
	r, err := robustness.Run(context.Background(), robustness.Options{MinDuration: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.OK(), r.Report.Summary.String())
}
