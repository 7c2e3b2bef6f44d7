package mutants_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/listwatch/listwatch/conformance/mutants"
)

// This program stops after the first mutant. A whole run takes about a minute.
func ExampleRun() {
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err := mutants.Run(ctx, func(m mutants.MutantResult) {
		fmt.Println(len(m.MissedBy), "cases missed the first mutant")
		cancel(errors.New("one is sufficient"))
	})
	fmt.Println(err)
	// Output:
	// 0 cases missed the first mutant
	// one is sufficient
}

// A mutant is killed if every case that it breaks detects it.
func ExampleResult() {
	r := mutants.Result{Trials: []mutants.MutantResult{
		{Name: "swaps two events", DetectedBy: []string{"order/versions", "order/all-watchers"}},
		{Name: "repeats an event", DetectedBy: []string{"order/versions"}, MissedBy: []string{"order/once"}},
	}}
	killed, survived, notTried := r.Counts()
	fmt.Println(killed, survived, notTried, r.OK())
	// Output: 1 1 0 false
}
