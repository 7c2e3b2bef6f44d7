package conformance

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
)

// MaxLevel is the highest level. A server or a client has the level N, called Watch N, if it passes
// every must of the levels 1 to N. Level 1 has the cases of lists, watches, resuming and expired
// versions; level 2 of bookmarks, initial events, selectors, pages and negotiation; level 3 of
// drains, slow readers, hostile peers and faults.
const MaxLevel = 3

// extensions are this module's additions to Kubernetes' protocol. No level requires them. The
// patterns of an extension match its cases.
var extensions = []struct {
	name     string
	patterns []string
}{
	{"differences", []string{"since"}},
	{"projection", []string{"fields"}},
	{"unions", []string{"union"}},
	{"conflation", []string{"conflate", "slow/coalesce-honest"}},
	{"expiry", []string{"expiry"}},
	{"QUERY", []string{"query"}},
	{"shared compression", []string{"comp/shared-*"}},
	{"WebSocket over HTTP/2", []string{"handshake/ws-over-h2"}},
}

//go:embed sets
var sets embed.FS

// A Set assigns cases to levels. A published set never changes, so a new case does not fail the
// builds that use an older set.
type Set struct {
	// Name is the month of publication, such as 2026-12.
	Name     string
	sections map[section][]string // IDs
}

type section struct {
	subject string // server or client
	level   int
}

// SetNames returns the names of all sets, the oldest first.
func SetNames() (names []string) {
	files, err := sets.ReadDir("sets")
	if err != nil {
		panic(err) // the directory is embedded
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".txt"))
	}
	return names
}

// LoadSet returns the set with the given name, or the newest set if the name is empty. An unknown
// name is an error of code Invalid.
func LoadSet(name string) (*Set, error) {
	known := SetNames()
	if name == "" {
		name = known[len(known)-1]
	}
	text, err := sets.ReadFile(path.Join("sets", name+".txt"))
	if err != nil {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("set %q: must be one of %s", name, strings.Join(known, ", ")),
		}
	}
	s := &Set{Name: name, sections: map[section][]string{}}
	var at section
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			at = section{}
			if _, err := fmt.Sscanf(line, "[%s %d]", &at.subject, &at.level); err != nil {
				return nil, fmt.Errorf("set %s: section %q: %w", name, line, err)
			}
		default:
			s.sections[at] = append(s.sections[at], line)
		}
	}
	return s, nil
}

// Describe returns the levels that the case with the given ID belongs to, such as "server 1, client
// 2", or the extension that it tests. It returns "" if there is neither.
func (s *Set) Describe(id string) string {
	var all []string
	for _, subject := range []harness.Subject{harness.Server, harness.Client} {
		for level := range MaxLevel {
			if slices.Contains(s.sections[section{subject.String(), level + 1}], id) {
				all = append(all, fmt.Sprintf("%s %d", subject, level+1))
			}
		}
	}
	for _, e := range extensions {
		if matchAny(e.patterns, id) {
			all = append(all, "extension: "+e.name)
		}
	}
	return strings.Join(all, ", ")
}

// judged returns the IDs of the cases by which o judges a target, one slice for each level from
// level 1 on. If o.Subject is empty, these are the cases for servers.
func (o Options) judged(s *Set) (all [][]string) {
	for n := range cmp.Or(o.Level, MaxLevel) {
		all = append(all, s.sections[section{cmp.Or(o.Subject, harness.Server).String(), n + 1}])
	}
	return all
}

// set returns the set that o judges by.
func (o Options) set() (*Set, error) {
	if o.Level < 0 || o.Level > MaxLevel {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("level %d: must be between 1 and %d", o.Level, MaxLevel),
		}
	}
	return LoadSet(o.Set)
}

// Levels is the judgment of a run by a set.
type Levels struct {
	Set     string          `json:"set"`
	Subject harness.Subject `json:"subject"`
	// Passed is the highest level that the target has, or 0. Required is the level that the run
	// requires, or 0.
	Passed   int     `json:"passed"`
	Required int     `json:"required,omitempty"`
	Levels   []Level `json:"levels"`
	// Missing are the musts up to the required level that were not tested and are not known
	// failures.
	Missing    []string         `json:"missing,omitempty"`
	Extensions []ExtensionShare `json:"extensions,omitempty"`
}

// A Level counts the cases of one level. A case that does not concern the target, because the
// target lacks its transport or framing, is not counted.
type Level struct {
	Level   int   `json:"level"`
	Musts   Share `json:"musts"`
	Shoulds Share `json:"shoulds"`
	// Failed and Untested are the IDs of the musts that failed, or that the suite could not test.
	Failed   []string `json:"failed,omitempty"`
	Untested []string `json:"untested,omitempty"`
}

// A Share counts cases.
type Share struct {
	Passed int `json:"passed"`
	Of     int `json:"of"`
}

// An ExtensionShare counts the tested cases of an addition of this module to Kubernetes' protocol.
type ExtensionShare struct {
	Name string `json:"name"`
	Share
}

// Passes reports whether the target passes every must of l.
func (l Level) Passes() bool { return l.Musts.Passed == l.Musts.Of && l.Musts.Of > 0 }

// A caseState is the state of a case for the judgment. If the variants of a case differ, the
// highest state counts.
type caseState byte

const (
	inapplicable caseState = iota + 1
	untested
	passed
	failed
)

func stateOf(o Outcome) caseState {
	switch o.Verdict {
	case runner.Pass, runner.XPass:
		return passed
	case runner.Fail, runner.Warn, runner.XFail, runner.SetupError:
		return failed
	}
	if o.Inapplicable {
		return inapplicable
	}
	return untested
}

// judge returns the levels of a run by a set.
func (o Options) judge(r *Report, set *Set) *Levels {
	states, strengths := map[string]caseState{}, map[string]harness.Strength{}
	for _, out := range r.Outcomes {
		states[out.ID] = max(states[out.ID], stateOf(out))
	}
	for _, c := range List() {
		strengths[c.ID] = c.Strength
	}
	all := &Levels{Set: set.Name, Subject: cmp.Or(o.Subject, harness.Server), Required: o.Level}
	for i, ids := range o.judged(set) {
		l := Level{Level: i + 1}
		for _, id := range ids {
			l.add(id, strengths[id], states[id])
		}
		if l.Passes() && all.Passed == i {
			all.Passed = i + 1
		}
		all.Levels = append(all.Levels, l)
		for _, id := range l.Untested {
			if _, known := o.KnownFailures.Reason(id); !known && o.Level > 0 {
				all.Missing = append(all.Missing, id)
			}
		}
	}
	for _, e := range extensions {
		share := ExtensionShare{Name: e.name}
		for id, state := range states {
			if matchAny(e.patterns, id) && state >= passed {
				share.add(state)
			}
		}
		if share.Of > 0 {
			all.Extensions = append(all.Extensions, share)
		}
	}
	return all
}

func (l *Level) add(id string, strength harness.Strength, state caseState) {
	if strength != harness.Must {
		l.Shoulds.add(state)
		return
	}
	l.Musts.add(state)
	switch state {
	case failed:
		l.Failed = append(l.Failed, id)
	case untested, 0:
		l.Untested = append(l.Untested, id)
	}
}

func (s *Share) add(state caseState) {
	switch state {
	case inapplicable:
		return
	case passed:
		s.Passed++
	}
	s.Of++
}
