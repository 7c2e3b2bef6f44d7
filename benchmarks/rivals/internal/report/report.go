// Package report writes the results as a table in Markdown, as plots, and as JSON.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/runner"
)

// A Report holds the results of a comparison.
type Report struct {
	Rivals  []runner.Rival
	Work    runner.Work
	Rounds  int
	Results map[string]runner.Result
}

// Table returns the results in Markdown.
func (r Report) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, `| %d watchers, 1 KiB | one event: CPU | ×floor | p99 | burst of %d: CPU | idle watcher | stalled: p99 alone → next to it | stalled reader gets | %d objects: CPU | time |
|---|---|---|---|---|---|---|---|---|---|
`, r.Work.Watchers, r.Work.Burst, r.Work.Objects)
	for _, rival := range r.Rivals {
		result := r.Results[rival.Name]
		fmt.Fprintf(&b, "| %s | %s µs | %s | %s ms | %s µs | %s KiB | %s → %s | %s | %s µs | %s ms |\n", rival.Label,
			number(result, runner.SingleCPU), r.timesFloor(rival), number(result, runner.SingleP99),
			number(result, runner.BurstCPU),
			number(result, runner.IdleMemory), number(result, runner.AloneP99), number(result, runner.StalledP99),
			r.stalled(result),
			number(result, runner.StateCPU), number(result, runner.StateTime))
	}
	return b.String()
}

// Storm returns the costs of returning watchers in Markdown.
func (r Report) Storm() string {
	var b strings.Builder
	fmt.Fprintf(&b, `| %d clients return, %d objects of 1 KiB, %d changes | whole state: bytes | CPU | last client | difference: bytes | CPU | last client |
|---|---|---|---|---|---|---|
`, r.Work.Returning, r.Work.Objects, r.Work.Missed)
	for _, rival := range r.Rivals {
		result := r.Results[rival.Name]
		fmt.Fprintf(&b, "| %s | %s MB | %s ms | %s ms |", rival.Label, number(result, runner.WholeBytes),
			number(result, runner.WholeCPU), number(result, runner.WholeTime))
		if _, ok := result[runner.DifferenceCPU]; !ok {
			fmt.Fprintln(&b, " not available | | |")
			continue
		}
		fmt.Fprintf(&b, " %s MB | %s ms | %s ms |\n", number(result, runner.DifferenceBytes),
			number(result, runner.DifferenceCPU), number(result, runner.DifferenceTime))
	}
	return b.String()
}

// number formats a value. It uses no decimals if the value is at least 10, one decimal if the value
// is at least 1, and otherwise two.
func number(result runner.Result, m runner.Metric) string {
	v, ok := result[m]
	switch {
	case !ok:
		return "–"
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 1:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// timesFloor compares the CPU time of single events with bare TCP.
func (r Report) timesFloor(rival runner.Rival) string {
	floor, ok := r.Results["floor"][runner.SingleCPU]
	v, measured := r.Results[rival.Name][runner.SingleCPU]
	if !ok || !measured || floor == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", v/floor)
}

// stalled describes what happened to the stalled reader.
func (r Report) stalled(result runner.Result) string {
	if _, ok := result[runner.StalledP99]; !ok {
		return "blocks all readers"
	}
	events, closed := result[runner.StallEvents], result[runner.StallClosed]
	memory := ""
	if m := result[runner.StallMemory]; m >= 1 {
		memory = fmt.Sprintf("; server +%.0f MiB", m)
	}
	switch {
	case int(events) > r.Work.StallEvents && closed == 0:
		return "everything" + memory
	case closed == 1:
		return fmt.Sprintf("%.0f events, then the end%s", events-1, memory)
	}
	return fmt.Sprintf("%.0f events, not the others%s", events-1, memory)
}

// Write writes table.md, storm.md, results.json and the plots to dir.
func (r Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"table.md": []byte(r.Table()), "storm.md": []byte(r.Storm()), "results.json": append(data, '\n'),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return r.plots(dir)
}

// Update replaces the text between the marks of a Markdown file with the tables.
func (r Report) Update(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for name, table := range map[string]string{"rivals": r.Table(), "rivals, storm": r.Storm()} {
		begin, end := fmt.Sprintf("<!-- make %s: begin -->\n", name), fmt.Sprintf("<!-- make %s: end -->\n", name)
		before, rest, ok := bytes.Cut(text, []byte(begin))
		_, after, ended := bytes.Cut(rest, []byte(end))
		if !ok || !ended {
			return fmt.Errorf("%s: must contain the lines %q and %q", file, begin, end)
		}
		text = fmt.Appendf(nil, "%s%s%s%s%s", before, begin, table, end, after)
	}
	return os.WriteFile(file, text, 0o644)
}
