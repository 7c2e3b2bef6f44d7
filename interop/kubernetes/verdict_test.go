//go:build !race

package kubernetes

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
)

var verdicts = flag.String("verdicts", "", "directory to which TestVerdicts writes its reports")

// TestVerdicts writes the reports of conformance/verdicts:
//
//	go test ./kubernetes -run TestVerdicts -verdicts DIR -timeout 1h
func TestVerdicts(t *testing.T) {
	if *verdicts == "" {
		t.Skip("it only writes reports: see -verdicts")
	}
	writeReport(t, "apiextensions-apiserver", openTarget(t, apiserver.Start(t)))
}

// writeReport tests a target, and writes the report to a file with its name.
func writeReport(t *testing.T, name string, target conformance.Target) {
	t.Helper()
	target.Name, target.Patience = name, 20*time.Second // only failing cases wait that long
	r, err := conformance.Execute(t.Context(), target,
		conformance.Options{Subject: harness.Server, Set: "2026-12"}, func(o conformance.Outcome) {
			t.Logf("%s %s", o.Verdict, o.Name())
		})
	if err != nil {
		t.Fatal(err)
	}
	r.Command = []string{"go", "test", "./kubernetes", "-run", "TestVerdicts", "-verdicts", "DIR", "-timeout", "1h"}
	f, err := os.Create(filepath.Join(*verdicts, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := report.JSON(f, r); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
