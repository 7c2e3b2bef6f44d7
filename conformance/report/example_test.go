package report_test

import (
	"fmt"
	"os"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/conformance/runner"
)

// This program compares two reports. Usually [report.Read] reads them from files.
func ExampleDiff() {
	before := &conformance.Report{Outcomes: []conformance.Outcome{outcome("resume/from-rv", "h2", runner.Pass)}}
	after := &conformance.Report{Outcomes: []conformance.Outcome{outcome("resume/from-rv", "h2", runner.Fail, "got 200, want 410")}}
	changes := report.Diff(before, after)
	if err := report.WriteDiff(os.Stdout, changes); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ! resume/from-rv/h2: fail, was pass
	//     got 200, want 410
	// 1 change, 1 regressed
}
