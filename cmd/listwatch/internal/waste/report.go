package waste

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/listwatch/listwatch"
)

// A Report contains what a watch has received, and what each parameter would have saved.
type Report struct {
	Initial Amount   `json:"initial"` // the initial events
	Changes Amount   `json:"changes"`
	Savings []Saving `json:"savings"`
}

// A Saving is what a watch with a parameter would not have received.
type Saving struct {
	Parameter string `json:"parameter"`
	Initial   Amount `json:"initial"`
	Changes   Amount `json:"changes"`
}

// Report returns what m has counted: first the members whose omission saves the most bytes.
func (m *Meter) Report() Report {
	r := Report{Initial: m.initial, Changes: m.changes}
	paths := slices.SortedFunc(maps.Keys(m.members), func(a, b string) int {
		x, y := m.members[a], m.members[b]
		return cmp.Or(y.changes.Bytes+y.initial.Bytes-x.changes.Bytes-x.initial.Bytes, strings.Compare(a, b))
	})
	for _, path := range paths[:min(len(paths), 15)] {
		omitted := m.members[path]
		r.Savings = append(r.Savings, Saving{omitted.parameter, omitted.initial, omitted.changes})
	}
	for _, p := range m.paces {
		r.Savings = append(r.Savings, Saving{"conflate=" + listwatch.FormatConflation(p.interval), Amount{}, p.saved})
	}
	selectors := slices.SortedFunc(maps.Keys(m.labels), func(a, b string) int {
		return cmp.Or(m.labels[b].Events-m.labels[a].Events, strings.Compare(a, b))
	})
	selectors = slices.DeleteFunc(selectors, func(s string) bool { return m.labels[s].Events == m.changes.Events })
	for _, s := range selectors[:min(len(selectors), 5)] {
		got := *m.labels[s]
		saved := Amount{m.changes.Events - got.Events, m.changes.Bytes - got.Bytes}
		r.Savings = append(r.Savings, Saving{s, Amount{}, saved})
	}
	return r
}

// Print writes r as a table.
func (r Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "initial events: %d, %s; changes: %d, %s (JSON without compression)\n",
		r.Initial.Events, size(r.Initial.Bytes), r.Changes.Events, size(r.Changes.Bytes))
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nSAVES EVENTS\tBYTES\tINITIAL BYTES\tPARAMETER\n")
	for _, s := range r.Savings {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", share(s.Changes.Events, r.Changes.Events),
			share(s.Changes.Bytes, r.Changes.Bytes), share(s.Initial.Bytes, r.Initial.Bytes), s.Parameter)
	}
	fmt.Fprint(t, "\nUse a parameter if you do not need what it leaves out. Several paths go into one\n"+
		"parameter, as in fields=-metadata.managedFields,-status.images.\n")
	return t.Flush()
}

func share(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func size(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
