package report

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
)

// A Finding is one thing that is wrong, however many runs showed it.
type Finding struct {
	// Outcome is that of the first run that showed it.
	conformance.Outcome
	// Where are the runs, in short: "resume/from-rv over h1 and h2".
	Location string
	// Names are those of all the runs.
	Names []string
	// Again is the command that runs the first of them again; empty: it is not known.
	RerunCommand string
}

// Findings returns what is wrong, the failures before the warnings. Runs of one case that say the same but for numbers are one Finding, and so are
// all for which the target was not there.
func Findings(r *conformance.Report) (all []Finding) {
	at := map[string]int{}
	for _, v := range []cases.Verdict{cases.Fail, cases.XPass, cases.SetupError, cases.Warn} {
		for _, o := range r.Outcomes {
			if o.Verdict != v {
				continue
			}
			k := cause(o)
			i, known := at[k]
			if !known {
				i = len(all)
				at[k], all = i, append(all, Finding{Outcome: o, RerunCommand: again(r, o.Name())})
			}
			all[i].Names = append(all[i].Names, o.Name())
		}
	}
	for i := range all {
		all[i].Location = where(r, all[i])
	}
	return all
}

var numbers = regexp.MustCompile(`[0-9]+`)

// cause is what runs that failed for one reason have in common. Some cases ask their questions in any order.
func cause(o conformance.Outcome) string {
	id := o.ID
	if o.Verdict == cases.SetupError {
		id = ""
	}
	said := strings.Split(numbers.ReplaceAllString(strings.Join(o.Messages, "\n"), "0"), "\n")
	slices.Sort(said)
	return strings.Join(append([]string{string(o.Verdict), id, o.Reason}, said...), "\n")
}

// where names the runs of f in short.
func where(r *conformance.Report, f Finding) string {
	ids := map[string]bool{}
	var ways []string
	for _, name := range f.Names {
		id, way := split(name)
		ids[id] = true
		ways = append(ways, way)
	}
	if len(ids) > 1 {
		return fmt.Sprintf("%s and %d other runs", f.Names[0], len(f.Names)-1)
	}
	if f.Way == "" {
		return f.ID
	}
	return f.ID + " over " + compress(ways, waysOf(r, f.ID))
}

// versionSaid is how messages and timelines name a version.
var versionSaid = regexp.MustCompile(`\b(?:at|version) ([0-9]+)\b`)

// concerned reports, for each line of a timeline, whether it is about a version that a message names: the write that was told wrongly.
func concerned(messages, timeline []string) []bool {
	named := map[string]bool{}
	for _, m := range versionSaid.FindAllStringSubmatch(strings.Join(messages, "\n"), -1) {
		named[m[1]] = true
	}
	all := make([]bool, len(timeline))
	for i, line := range timeline {
		m := versionSaid.FindStringSubmatch(line)
		all[i] = m != nil && named[m[1]]
	}
	return all
}

func split(name string) (id, way string) {
	if strings.Count(name, "/") < 2 {
		return name, ""
	}
	return path.Dir(name), path.Base(name)
}

// waysOf returns the ways in which a case was run.
func waysOf(r *conformance.Report, id string) (ways []string) {
	for _, o := range r.Outcomes {
		if o.ID == id && o.Way != "" {
			ways = append(ways, o.Way)
		}
	}
	return ways
}

// compress names ways, of all that there were: "all 5 ways", "h1, ws-*".
func compress(ways, all []string) string {
	if len(ways) == 2 && len(all) == 2 {
		return "both ways"
	}
	if len(ways) > 1 && len(ways) == len(all) {
		return fmt.Sprintf("all %d ways", len(all))
	}
	family := func(way string) string {
		prefix, _, ok := strings.Cut(way, "-")
		if !ok {
			return way
		}
		return prefix + "-*"
	}
	within := func(list []string, f string) int {
		return len(slices.DeleteFunc(slices.Clone(list), func(w string) bool { return family(w) != f }))
	}
	var short []string
	for _, way := range ways {
		if f := family(way); within(ways, f) > 1 && within(ways, f) == within(all, f) {
			way = f
		}
		if !slices.Contains(short, way) {
			short = append(short, way)
		}
	}
	return strings.Join(short, ", ")
}

// again is the command that runs a case again; empty where no command was.
func again(r *conformance.Report, name string) string {
	if len(r.Command) == 0 {
		return ""
	}
	var words []string
	for _, w := range append(slices.Clone(r.Command), "--run", name) {
		words = append(words, quoted(w))
	}
	return strings.Join(words, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,$-]+$`)

// quoted is w as a shell takes it for one word. A "$" at its front is a variable.
func quoted(w string) string {
	if plainWord.MatchString(w) && strings.LastIndexByte(w, '$') <= 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
