package report

import (
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A heatMap is a table of cases and variants.
type heatMap struct {
	Variants []string
	Filters  []verdictFilter
	Groups   []groupView
}

type verdictFilter struct {
	Verdict runner.Verdict
	Sign    string
	Count   int
	Meaning string
}

type groupView struct {
	Name, About string
	Columns     int
	Rows        []rowView
}

type rowView struct {
	ID, Rule, Level, Verdicts string
	Cells                     []cellView
}

// A cellView is a cell for one run. A cell without a run has no verdict. If Whole is true, the cell
// spans the columns of all variants.
type cellView struct {
	Name    string
	Verdict runner.Verdict
	Sign    string
	Reason  string
	Whole   bool
}

// mapSigns are the signs of verdicts in the table. They can be distinguished without color.
var mapSigns = map[runner.Verdict]string{
	runner.Pass: "✓", runner.Fail: "✕", runner.Warn: "!", runner.Info: "i", runner.Skip: "–", runner.XFail: "~", runner.XPass: "?",
	runner.SetupError: "⚠", runner.NotRun: "·",
}

func newHeatMap(r *conformance.Report, s Summary) heatMap {
	m := heatMap{Variants: variantColumns(r)}
	for _, v := range occurring(s.RunsByVerdict) {
		m.Filters = append(m.Filters, verdictFilter{v, mapSigns[v], s.RunsByVerdict[v], verdictMeanings[v]})
	}
	for _, c := range byCase(r) {
		name, _, _ := strings.Cut(c[0].ID, "/")
		if n := len(m.Groups); n == 0 || m.Groups[n-1].Name != name {
			m.Groups = append(m.Groups, groupView{Name: name, Columns: len(m.Variants) + 2})
		}
		g := &m.Groups[len(m.Groups)-1]
		g.Rows = append(g.Rows, m.row(c))
	}
	for i := range m.Groups {
		m.Groups[i].About = plural(len(m.Groups[i].Rows), "case")
	}
	return m
}

// variantColumns returns all variants of a report in the order of the suite.
func variantColumns(r *conformance.Report) (variants []string) {
	for _, o := range r.Outcomes {
		if o.Variant != "" && !slices.Contains(variants, o.Variant) {
			variants = append(variants, o.Variant)
		}
	}
	order := harness.Variants()
	slices.SortStableFunc(variants, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	if len(variants) == 0 {
		variants = []string{"any"}
	}
	return variants
}

func (m *heatMap) row(c []conformance.Outcome) rowView {
	row := rowView{ID: c[0].ID, Rule: c[0].Rule, Level: c[0].Level.Name()}
	var verdicts []string
	for _, o := range c {
		if v := string(o.Verdict); !slices.Contains(verdicts, v) {
			verdicts = append(verdicts, v)
		}
	}
	row.Verdicts = strings.Join(verdicts, " ")
	if c[0].Variant == "" {
		o := c[0]
		row.Cells = []cellView{{o.Name(), o.Verdict, mapSigns[o.Verdict], o.Reason, true}}
		return row
	}
	for _, variant := range m.Variants {
		var cell cellView
		for _, o := range c {
			if o.Variant == variant {
				cell = cellView{o.Name(), o.Verdict, mapSigns[o.Verdict], o.Reason, false}
			}
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}
