package models

import (
	"cmp"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var check = flag.Bool("check", false, "check the models with Spin, which takes a few minutes and 3 GB of memory")

func TestModelsHoldAndDefectsAreFound(t *testing.T) {
	if !*check {
		t.Skip("slow; make long-models runs it")
	}
	for model, defects := range map[string][]string{
		"cursor.pml": {"IGNORE_HORIZON", "DEPARTURES_OF_NEWEST_STATE", "IGNORE_MARK"},
		"relay.pml":  {"GAPS_IGNORED", "EPOCH_IGNORED"},
	} {
		path, err := filepath.Abs(model)
		if err != nil {
			t.Fatal(err)
		}
		if out := verify(t, path); !strings.Contains(out, "errors: 0") {
			t.Errorf("%s:\n%s", model, out)
		}
		for _, defect := range defects {
			if out := verify(t, path, "-D"+defect); !strings.Contains(out, "assertion violated") {
				t.Errorf("%s with the defect %s: the defect was not found\n%s", model, defect, out)
			}
		}
	}
}

// verify returns the report of Spin on a model.
func verify(t *testing.T, path string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("spin", append(flags, "-a", path)...)
	run("cc", "-w", "-O2", "-DSAFETY", "-o", "pan", "pan.c")
	report := run("./pan", "-m1000000", "-w26")
	if strings.Contains(report, "max search depth too small") {
		t.Fatalf("the search was not complete:\n%s", report)
	}
	return report
}

// The labels of the model are the stages of a cursor, or a comment beside them names the stage.
func TestModelHasTheStagesOfACursor(t *testing.T) {
	model, err := os.ReadFile("cursor.pml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../history/*.go")
	if err != nil {
		t.Fatal(err)
	}
	stages := map[string]bool{}
	reads := regexp.MustCompile(`(?m)^func \(\w+ \*(\w+)\) read\(\w+ batch\)`)
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reads.FindAllStringSubmatch(string(code), -1) {
			stages[m[1]] = true
		}
	}
	label := regexp.MustCompile(`(?m)^(\w+):(?: /\* the stage (\w+) \*/)?`)
	found := 0
	for _, m := range label.FindAllStringSubmatch(string(model), -1) {
		switch name := cmp.Or(m[2], m[1]); {
		case stages[name]:
			found++
		case name != "expired" && name != "end":
			t.Errorf("step %s of the model is no stage in the code, which has %v", name, stages)
		}
	}
	if found < 4 {
		t.Errorf("the model has %d of the stages of a cursor, want 4", found)
	}
}
