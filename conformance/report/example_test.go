package report_test

import (
	"fmt"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/conformance/runner"
)

// This program prints what a run found.
func ExampleFindings() {
	r := &conformance.Report{Outcomes: []conformance.Outcome{
		outcome("resume/from-rv", "h1", runner.Pass),
		outcome("resume/from-rv", "h2", runner.Fail, "got 200, want 410"),
	}}
	for _, f := range report.Findings(r) {
		fmt.Println(f.Verdict, f.Location, f.Messages)
	}
	// Output: fail resume/from-rv over h2 [got 200, want 410]
}
