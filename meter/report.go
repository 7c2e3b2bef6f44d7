package meter

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/listwatch/listwatch/internal/rest"
)

// A Report contains what a watch has received, and what each parameter would have saved.
type Report struct {
	Initial Amount   `json:"initial"` // the initial events
	Changes Amount   `json:"changes"`
	Savings []Saving `json:"savings"`
	// Selectors are the Meter.Fields with several values, the most selective one first.
	Selectors []Selector `json:"selectors,omitempty"`
}

// A Saving is what a watch with a parameter would not have received.
type Saving struct {
	Parameter string `json:"parameter"`
	Initial   Amount `json:"initial"`
	Changes   Amount `json:"changes"`
}

// A Selector is a field with the number of its different values, of which at most 2,000 are
// counted. A watch with a selector for one value receives, on average, that part of the changes.
type Selector struct {
	Field  string `json:"field"`
	Values int    `json:"values"`
}

// Report returns what m has counted: first the projections that save the most bytes.
func (m *Meter) Report() Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Report{Initial: m.initial, Changes: m.changes, Savings: []Saving{}}
	for _, p := range m.projections {
		r.Savings = append(r.Savings, Saving{p.parameter, p.initial, p.changes})
	}
	bytesOf := func(s Saving) int { return s.Initial.Bytes + s.Changes.Bytes }
	slices.SortFunc(r.Savings, func(a, b Saving) int {
		return cmp.Or(bytesOf(b)-bytesOf(a), strings.Compare(a.Parameter, b.Parameter))
	})
	r.Savings = r.Savings[:min(len(r.Savings), 15)]
	for _, p := range m.paces {
		r.Savings = append(r.Savings, Saving{"conflate=" + rest.FormatConflation(p.interval), Amount{}, p.saved})
	}
	r.Savings = append(r.Savings, m.bySelectors()...)
	for _, field := range m.Fields {
		if n := len(m.selectors["fieldSelector="+field]); n > 1 {
			r.Selectors = append(r.Selectors, Selector{field, n})
		}
	}
	slices.SortFunc(r.Selectors, func(a, b Selector) int {
		return cmp.Or(b.Values-a.Values, strings.Compare(a.Field, b.Field))
	})
	return r
}

// bySelectors returns the savings of the selectors with the most events.
func (m *Meter) bySelectors() (all []Saving) {
	for parameter, values := range m.selectors {
		for value, got := range values {
			if got.Events < m.changes.Events {
				saved := Amount{m.changes.Events - got.Events, m.changes.Bytes - got.Bytes}
				all = append(all, Saving{parameter + "=" + value, Amount{}, saved})
			}
		}
	}
	slices.SortFunc(all, func(a, b Saving) int {
		return cmp.Or(a.Changes.Events-b.Changes.Events, strings.Compare(a.Parameter, b.Parameter))
	})
	return all[:min(len(all), 5)]
}

// Columns are the titles of [Report.Rows].
var Columns = [...]string{"saves events", "bytes", "initial bytes", "parameter"}

// Rows returns the savings as parts of what the watch has received, for people.
func (r Report) Rows() [][len(Columns)]string {
	rows := make([][len(Columns)]string, 0, len(r.Savings))
	for _, s := range r.Savings {
		rows = append(rows, [...]string{
			share(s.Changes.Events, r.Changes.Events), share(s.Changes.Bytes, r.Changes.Bytes),
			share(s.Initial.Bytes, r.Initial.Bytes), s.Parameter,
		})
	}
	return rows
}

// Print writes r as a table.
func (r Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "initial events: %d, %s; changes: %d, %s (JSON without compression)\n\n",
		r.Initial.Events, size(r.Initial.Bytes), r.Changes.Events, size(r.Changes.Bytes))
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(Columns[:], "\t")))
	for _, row := range r.Rows() {
		fmt.Fprintln(t, strings.Join(row[:], "\t"))
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
