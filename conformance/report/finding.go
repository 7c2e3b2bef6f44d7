package report

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A Finding is one problem, which one or more runs showed.
type Finding struct {
	// Outcome is the outcome of the first run that showed the problem.
	conformance.Outcome
	// Location summarizes the runs, such as "resume/from-rv over h1 and h2".
	Location string
	// Names are the names of all runs that showed the problem.
	Names []string
	// RerunCommand is the command that repeats the first run. It is empty if the command is
	// unknown.
	RerunCommand string
}

// Findings returns the problems, failures before warnings. Runs of one case belong to the
// same Finding if their messages differ only in numbers. Runs with the verdict setup-error
// and equal messages are one Finding even if they belong to different cases.
func Findings(r *conformance.Report) (all []Finding) {
	at := map[string]int{}
	for _, v := range []runner.Verdict{runner.Fail, runner.XPass, runner.SetupError, runner.Warn} {
		for _, o := range r.Outcomes {
			if o.Verdict != v {
				continue
			}
			k := failureKey(o)
			i, known := at[k]
			if !known {
				i = len(all)
				at[k], all = i, append(all, Finding{Outcome: o, RerunCommand: rerunCommand(r, o.Name())})
			}
			all[i].Names = append(all[i].Names, o.Name())
		}
	}
	for i := range all {
		all[i].Location = location(r, all[i])
	}
	return all
}

var numbers = regexp.MustCompile(`[0-9]+`)

// failureKey returns a key that is equal for runs that failed for the same reason. It sorts
// the messages because some cases report them in any order.
func failureKey(o conformance.Outcome) string {
	id := o.ID
	if o.Verdict == runner.SetupError {
		id = ""
	}
	lines := strings.Split(numbers.ReplaceAllString(strings.Join(o.Messages, "\n"), "0"), "\n")
	slices.Sort(lines)
	return strings.Join(append([]string{string(o.Verdict), id, o.Reason}, lines...), "\n")
}

// location summarizes the runs of f.
func location(r *conformance.Report, f Finding) string {
	ids := map[string]bool{}
	var variants []string
	for _, name := range f.Names {
		id, variant := splitName(name)
		ids[id] = true
		variants = append(variants, variant)
	}
	if len(ids) > 1 {
		return f.Names[0] + " and " + plural(len(f.Names)-1, "other run")
	}
	if f.Variant == "" {
		return f.ID
	}
	return f.ID + " over " + summarizeVariants(variants, variantsOf(r, f.ID))
}

// mentionedVersion matches a version in messages and timelines.
var mentionedVersion = regexp.MustCompile(`\b(?:at|version) ([0-9]+)\b`)

// highlightedLines reports for each line of a timeline whether it contains a version that a
// message mentions.
func highlightedLines(messages, timeline []string) []bool {
	named := map[string]bool{}
	for _, m := range mentionedVersion.FindAllStringSubmatch(strings.Join(messages, "\n"), -1) {
		named[m[1]] = true
	}
	all := make([]bool, len(timeline))
	for i, line := range timeline {
		m := mentionedVersion.FindStringSubmatch(line)
		all[i] = m != nil && named[m[1]]
	}
	return all
}

func splitName(name string) (id, variant string) {
	if strings.Count(name, "/") < 2 {
		return name, ""
	}
	return path.Dir(name), path.Base(name)
}

// variantsOf returns the variants in which a case ran.
func variantsOf(r *conformance.Report, id string) (variants []string) {
	for _, o := range r.Outcomes {
		if o.ID == id && o.Variant != "" {
			variants = append(variants, o.Variant)
		}
	}
	return variants
}

// summarizeVariants describes a subset of all variants, such as "all 5 variants" or "h1,
// ws-*".
func summarizeVariants(variants, all []string) string {
	if len(variants) == 2 && len(all) == 2 {
		return "both variants"
	}
	if len(variants) > 1 && len(variants) == len(all) {
		return fmt.Sprintf("all %d variants", len(all))
	}
	family := func(variant string) string {
		prefix, _, ok := strings.Cut(variant, "-")
		if !ok {
			return variant
		}
		return prefix + "-*"
	}
	within := func(list []string, f string) int {
		return len(slices.DeleteFunc(slices.Clone(list), func(w string) bool { return family(w) != f }))
	}
	var short []string
	for _, variant := range variants {
		if f := family(variant); within(variants, f) > 1 && within(variants, f) == within(all, f) {
			variant = f
		}
		if !slices.Contains(short, variant) {
			short = append(short, variant)
		}
	}
	return strings.Join(short, ", ")
}

// rerunCommand returns the command that repeats a run, or "" if it is unknown.
func rerunCommand(r *conformance.Report, name string) string {
	if len(r.Command) == 0 {
		return ""
	}
	var words []string
	for _, w := range append(slices.Clone(r.Command), "--run", name) {
		words = append(words, shellQuote(w))
	}
	return strings.Join(words, " ")
}

var safeShellWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,$-]+$`)

// shellQuote quotes w for a shell. It does not quote a leading "$", which refers to a
// variable.
func shellQuote(w string) string {
	if safeShellWord.MatchString(w) && strings.LastIndexByte(w, '$') <= 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
