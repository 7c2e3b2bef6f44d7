package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/report"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/runner"
)

// TestMain lets the test binary act as a server or load process.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == "serve" || os.Args[1] == "load") {
		main()
		return
	}
	os.Exit(m.Run())
}

// smoke is a small amount of work that suffices to measure every metric. No phase has more than 16
// events, the smallest buffer of a rival for a watcher, so it does not matter how a rival treats a
// slow reader.
var smoke = runner.Work{
	Watchers: 5, Singles: 3, Bursts: 2, Burst: 4,
	Paced: 16, StallEvents: 16, PacedInterval: time.Millisecond,
	Objects: 200, StateReads: 2,
	Returning: 3, Missed: 5,
}

// smokeRivals returns all rivals that need no other program. interop/rivals tests the Kubernetes
// API servers.
func smokeRivals() []runner.Rival {
	var all []runner.Rival
	for _, r := range runner.Rivals {
		if !strings.HasPrefix(r.Name, "kubernetes") {
			all = append(all, r)
		}
	}
	return all
}

func TestEveryRivalDeliversEveryEvent(t *testing.T) {
	for _, rival := range smokeRivals() {
		t.Run(rival.Name, func(t *testing.T) {
			t.Parallel()
			results, err := runner.Run([]runner.Rival{rival},
				runner.Options{Work: smoke, Rounds: 1, Progress: t.Output()})
			if err != nil {
				t.Fatal(err)
			}
			r := results[rival.Name]
			for _, m := range []runner.Metric{
				runner.SingleCPU, runner.SingleP99, runner.BurstCPU, runner.AloneP99,
				runner.StateCPU, runner.StateTime,
			} {
				if r[m] <= 0 {
					t.Errorf("%s: got %v, want a positive value", m, r[m])
				}
			}
			if whole := r[runner.WholeBytes]; whole < 3*200*1000/1e6 || r[runner.DifferenceBytes] > whole/20 {
				t.Errorf("returning watchers received %v MB, or %v MB of differences", whole, r[runner.DifferenceBytes])
			}
			if _, ok := r[runner.DifferenceTime]; ok != strings.HasPrefix(rival.Name, "listwatch") {
				t.Errorf("a difference was measured: %v, want that only of listwatch", ok)
			}
			if r[runner.StallEvents] != float64(smoke.StallEvents+1) {
				t.Errorf("the stalled reader received %v events, want all %d changes and the initial object",
					r[runner.StallEvents], smoke.StallEvents)
			}
		})
	}
}

func TestReportHasTableAndPlots(t *testing.T) {
	results := map[string]runner.Result{}
	for i, rival := range runner.Rivals {
		results[rival.Name] = runner.Result{
			runner.SingleCPU: float64(10 + i), runner.BurstCPU: 1, runner.IdleMemory: 2,
			runner.StateCPU: 3,
		}
	}
	results["sse"][runner.StalledP99] = 1
	results["listwatch-h2"][runner.DifferenceCPU] = 2
	r := report.Report{Rivals: runner.Rivals, Work: defaultWork, Rounds: 1, Results: results}
	dir := t.TempDir()
	docs := filepath.Join(dir, "docs.md")
	if err := os.WriteFile(docs, []byte("before\n<!-- make rivals: begin -->\nold\n<!-- make rivals: end -->\nafter\n"+
		"<!-- make rivals, storm: begin -->\nold\n<!-- make rivals, storm: end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := r.Update(docs); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	text := read("docs.md")
	for _, want := range []string{
		"before\n", "\nafter\n", "| tmaxmax/go-sse | 12 µs | 1.20 |", "blocks all readers",
		read("table.md"), read("storm.md"),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s\nwant %q", text, want)
		}
	}
	if strings.Contains(text, "old") {
		t.Errorf("got %s\nwant the old table replaced", text)
	}
	for _, name := range []string{"rivals-fanout.svg", "rivals-idle.svg", "rivals-state.svg"} {
		if svg := read(name); !strings.Contains(svg, "<svg") || !strings.Contains(svg, "tmaxmax/go-sse") {
			t.Errorf("%s is no plot of the rivals: %.300s", name, svg)
		}
	}
	if err := json.Unmarshal([]byte(read("results.json")), &report.Report{}); err != nil {
		t.Error(err)
	}
	if err := r.Update(filepath.Join(dir, "table.md")); err == nil {
		t.Error("a file without marks was updated, want an error")
	}
}

func TestSelectRefusesUnknownRivals(t *testing.T) {
	if all, err := runner.Select(""); err != nil || len(all) != len(runner.Rivals) {
		t.Errorf("got %v, %v; want all rivals", all, err)
	}
	if some, err := runner.Select("grpc,floor"); err != nil || len(some) != 2 || some[0].Name != "grpc" {
		t.Errorf("got %v, %v; want grpc and the floor", some, err)
	}
	if _, err := runner.Select("grpc,nothing"); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("got error %v, want one that names the unknown rival", err)
	}
}
