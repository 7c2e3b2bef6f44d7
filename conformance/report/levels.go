package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/listwatch/listwatch/conformance"
)

// A levelRow is a level, or an extension, as text and HTML show it.
type levelRow struct {
	Name, Verdict, Share string
	// Missing are the musts that prevent the level.
	Missing []string
}

func levelRows(r *conformance.Report) (rows []levelRow) {
	if r.Levels == nil {
		return nil
	}
	for _, l := range r.Levels.Levels {
		row := levelRow{Name: fmt.Sprintf("Watch %d", l.Level), Verdict: "passed", Share: share(l.Musts, "must")}
		if l.Shoulds.Of > 0 {
			row.Share += ", " + share(l.Shoulds, "should")
		}
		if !l.Passes() {
			row.Verdict = "not passed"
		}
		for _, m := range []struct {
			what string
			ids  []string
		}{{"failed", l.Failed}, {"not tested", l.Untested}} {
			if len(m.ids) > 0 {
				row.Missing = append(row.Missing, m.what+": "+strings.Join(m.ids, ", "))
			}
		}
		rows = append(rows, row)
	}
	for _, e := range r.Levels.Extensions {
		rows = append(rows, levelRow{Name: e.Name, Verdict: "extension", Share: share(e.Share, "case")})
	}
	return rows
}

func share(s conformance.Share, what string) string {
	return fmt.Sprintf("%d of %s", s.Passed, plural(s.Of, what))
}

// levelName returns the level that the target has, such as "Watch 2".
func levelName(l *conformance.Levels) string {
	if l.Passed == 0 {
		return "no level"
	}
	return fmt.Sprintf("Watch %d", l.Passed)
}

// levelsTitle names the subject and the set of the judgment.
func levelsTitle(l *conformance.Levels) string {
	return fmt.Sprintf("Levels of a %s, set %s", l.Subject, l.Set)
}

// writeLevels writes the levels and the extensions.
func writeLevels(out io.Writer, r *conformance.Report) {
	if r.Levels == nil {
		return
	}
	fmt.Fprintf(out, "%s:\n", levelsTitle(r.Levels))
	for _, row := range levelRows(r) {
		fmt.Fprintf(out, "  %-24s%-12s%s\n", row.Name, row.Verdict, row.Share)
		for _, line := range row.Missing {
			fmt.Fprintf(out, "      %s\n", line)
		}
	}
	fmt.Fprintln(out)
}
