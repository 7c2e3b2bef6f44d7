package report

import (
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
)

// A heatMap is cases by ways, in groups.
type heatMap struct {
	Ways   []string
	Chips  []chip
	Groups []groupView
}

type chip struct {
	Verdict cases.Verdict
	Sign    string
	Count   int
	Word    string
}

type groupView struct {
	Name, About string
	Columns     int
	Rows        []rowView
}

type rowView struct {
	ID, Says, Level, Verdicts string
	Cells                     []cellView
}

// A cellView is one run; without a verdict there is none. One that is Whole takes all ways.
type cellView struct {
	Name    string
	Verdict cases.Verdict
	Sign    string
	Reason  string
	Whole   bool
}

// marks are the verdicts in the map, which can be told apart without their colours.
var marks = map[cases.Verdict]string{
	cases.Pass: "✓", cases.Fail: "✕", cases.Warn: "!", cases.Info: "i", cases.Skip: "–", cases.XFail: "~", cases.XPass: "?",
	cases.SetupError: "⚠", cases.NotRun: "·",
}

func newHeatMap(r *conformance.Report, s Summary) heatMap {
	m := heatMap{Ways: columns(r)}
	for _, v := range present(s.RunsByVerdict) {
		m.Chips = append(m.Chips, chip{v, marks[v], s.RunsByVerdict[v], words[v]})
	}
	for _, c := range byCase(r) {
		name, _, _ := strings.Cut(c[0].ID, "/")
		if n := len(m.Groups); n == 0 || m.Groups[n-1].Name != name {
			m.Groups = append(m.Groups, groupView{Name: name, Columns: len(m.Ways) + 2})
		}
		g := &m.Groups[len(m.Groups)-1]
		g.Rows = append(g.Rows, m.row(c))
	}
	for i := range m.Groups {
		m.Groups[i].About = plural(len(m.Groups[i].Rows), "case")
	}
	return m
}

// columns are all the ways of a report, in the order in which the suite has them.
func columns(r *conformance.Report) (ways []string) {
	for _, o := range r.Outcomes {
		if o.Way != "" && !slices.Contains(ways, o.Way) {
			ways = append(ways, o.Way)
		}
	}
	order := cases.Variants()
	slices.SortStableFunc(ways, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	if len(ways) == 0 {
		ways = []string{"any"}
	}
	return ways
}

func (m *heatMap) row(c []conformance.Outcome) rowView {
	row := rowView{ID: c[0].ID, Says: c[0].Says, Level: c[0].Level.Name()}
	var verdicts []string
	for _, o := range c {
		if v := string(o.Verdict); !slices.Contains(verdicts, v) {
			verdicts = append(verdicts, v)
		}
	}
	row.Verdicts = strings.Join(verdicts, " ")
	if c[0].Way == "" {
		o := c[0]
		row.Cells = []cellView{{o.Name(), o.Verdict, marks[o.Verdict], o.Reason, true}}
		return row
	}
	for _, way := range m.Ways {
		var cell cellView
		for _, o := range c {
			if o.Way == way {
				cell = cellView{o.Name(), o.Verdict, marks[o.Verdict], o.Reason, false}
			}
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}
