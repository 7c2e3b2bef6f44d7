package conformancecmd

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/spf13/cobra"
)

// A listedCase is the JSON form of a case.
type listedCase struct {
	ID         string   `json:"id"`
	Strength   string   `json:"strength"`
	Subject    string   `json:"subject"`
	Transports []string `json:"transports"`
	Mode       string   `json:"mode"`
	Levels     string   `json:"levels,omitempty"`
	Rule       string   `json:"rule"`
	Needs      []string `json:"needs,omitempty"`
	CoveredBy  string   `json:"coveredBy,omitempty"`
}

func newConformanceList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [PATTERN...]",
		Short: "List the cases",
		Long:  "List all cases, or the cases that match a pattern such as resume or 'resume/rv-*'.",
		RunE: func(cmd *cobra.Command, patterns []string) error {
			all, err := selectCases(patterns)
			if err != nil {
				return err
			}
			if asJSON {
				return listJSON(cmd.OutOrStdout(), all)
			}
			return listText(cmd.OutOrStdout(), all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// selectCases returns the cases that match any of patterns, or all cases if there are no
// patterns.
func selectCases(patterns []string) ([]conformance.Case, error) {
	if err := (conformance.Options{Run: patterns}).Check(); err != nil {
		return nil, cli.UsageError(err)
	}
	return slices.DeleteFunc(conformance.List(), func(c conformance.Case) bool {
		return len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool {
			return conformance.Match(p, c.ID)
		})
	}), nil
}

func listJSON(w io.Writer, listed []conformance.Case) error {
	set, err := conformance.LoadSet("")
	if err != nil {
		return err
	}
	all := []listedCase{}
	for _, c := range listed {
		all = append(all, listedCase{
			c.ID, c.Strength.String(), c.Side().String(), strings.Fields(c.AppliesTo()), c.Mode.Letters(),
			set.Describe(c.ID), c.Rule,
			strings.Fields(c.Needs.String()), c.CoveredBy,
		})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(all)
}

// listText prints a line for each case. Instead of its level, a case that no level requires shows
// its subject.
func listText(w io.Writer, listed []conformance.Case) error {
	set, err := conformance.LoadSet("")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	group := ""
	for _, c := range listed {
		if c.Group() != group {
			group = c.Group()
			fmt.Fprintf(out, "\n%s\n", group)
		}
		fmt.Fprintf(out, "  %-38s %-8s %-22s %-9s %s\n", c.ID, c.Strength.String(),
			cmp.Or(set.Describe(c.ID), c.Side().String()), c.AppliesTo(), c.Rule)
	}
	fmt.Fprintf(out, "\n%d cases; listwatch conformance explain ID describes one\n", len(listed))
	return out.Flush()
}

func newConformanceExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID",
		Short: "Describe a case and its requirements",
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var near []string
			for _, c := range conformance.List() {
				if c.ID == args[0] {
					return explain(cmd.OutOrStdout(), c)
				}
				if strings.Contains(c.ID, args[0]) {
					near = append(near, c.ID)
				}
			}
			if len(near) > 0 {
				return cli.Usagef("unknown case %q; did you mean %s?", args[0], strings.Join(near, ", "))
			}
			return cli.Usagef("unknown case %q: listwatch conformance list shows all", args[0])
		},
	}
}

var modeTexts = map[harness.Mode]string{
	harness.RealTime:    "real sockets",
	harness.FakeTime:    "a fake clock, under go test only",
	harness.BothTimes:   "a fake clock, under go test only; real sockets",
	harness.EitherTime:  "a fake clock, under go test only; real time with conformance client --exec",
	harness.UnderFaults: "a system under faults",
}

func explain(w io.Writer, c conformance.Case) error {
	set, err := conformance.LoadSet("")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n\n  %s\n\n", c.ID, c.Rule)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "%-11s %s\n", name, value)
		}
	}
	line("strength", c.Strength.String()+": "+c.Strength.Meaning())
	if levels := set.Describe(c.ID); levels != "" {
		line("level", levels+" in the set "+set.Name)
	}
	line("subject", c.Side().String())
	line("transports", c.AppliesTo())
	line("mode", modeTexts[c.Mode])
	line("needs", c.Needs.String())
	switch {
	case strings.HasPrefix(c.CoveredBy, "lives in "):
		at := strings.Fields(strings.TrimPrefix(c.CoveredBy, "lives in "))
		line("run it", "go test ./"+at[0]+" -run '^"+at[len(at)-1]+"$'")
	case c.CoveredBy != "":
		line("test", "none: it "+c.CoveredBy)
	case c.Side() == harness.Client:
		line("run it", "listwatch conformance client --exec COMMAND --run "+c.ID)
	case c.RunsIn(harness.RealTime):
		line("run it", "listwatch conformance server --kube URL --run "+c.ID)
	default:
		line("run it", "go test ./conformance/internal/cases -run 'TestCases/"+c.ID+"'")
	}
	return out.Flush()
}
