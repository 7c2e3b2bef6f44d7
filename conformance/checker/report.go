package checker

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

// A Violation is a broken guarantee and the place where it was broken.
type Violation struct {
	Guarantee Guarantee `json:"guarantee"`
	// Watcher names the watcher or informer, Session is the index of the session in the
	// history, and Event is the index of the event in the session. Session and Event are
	// negative if the violation does not concern a session or an event.
	Watcher   string `json:"watcher,omitempty"`
	Session   int    `json:"session"`
	Transport string `json:"transport,omitempty"`
	Event     int    `json:"event"`
	// At is the time at which the event was received, or zero if it is unknown.
	At time.Duration `json:"at,omitempty"`
	// Want and Got describe the expected and the observed behavior.
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Error returns the violation as four lines: guarantee, place, want and got.
func (v Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n  ", v.Guarantee, v.Guarantee.Text())
	if v.Watcher != "" {
		fmt.Fprintf(&b, "watcher %s ", v.Watcher)
	}
	if v.Session >= 0 {
		fmt.Fprintf(&b, "session %d ", v.Session)
	}
	if v.Transport != "" {
		fmt.Fprintf(&b, "over %s ", v.Transport)
	}
	if v.Event >= 0 {
		fmt.Fprintf(&b, "event %d ", v.Event)
	}
	if v.At != 0 {
		fmt.Fprintf(&b, "after %s", roundDuration(v.At))
	}
	fmt.Fprintf(&b, "\n  want %s\n  got  %s", v.Want, v.Got)
	return b.String()
}

// A Report is the result of a check.
type Report struct {
	Meta    Meta    `json:"meta"`
	Summary Summary `json:"summary"`
	// Violations may be incomplete; Summary counts all violations. See [Options].
	Violations []Violation `json:"violations,omitempty"`
}

// Err returns nil if no guarantee was violated and the run met its requirements. It returns
// an error of code Corrupt if a guarantee was violated, and of code Invalid if only the
// requirements were not met. The message contains the whole report.
func (r *Report) Err() error {
	missing := r.Meta.Requirements.Missing(&r.Summary)
	if r.Summary.Violations == 0 && len(missing) == 0 {
		return nil
	}
	code := listwatch.Corrupt
	if r.Summary.Violations == 0 {
		code = listwatch.Invalid
	}
	var b strings.Builder
	_ = r.WriteText(&b)
	return &listwatch.Error{Code: code, Op: "check " + r.Meta.Name, Message: "\n" + b.String()}
}

// WriteText writes r as text.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, v := range r.Violations {
		b.WriteString(v.Error() + "\n\n")
	}
	if more := r.Summary.Violations - len(r.Violations); more > 0 {
		fmt.Fprintf(&b, "and %d more violations\n\n", more)
	}
	b.WriteString(r.Summary.String() + "\n")
	for _, line := range r.Meta.Requirements.Missing(&r.Summary) {
		b.WriteString("requirement not met: " + line + "\n")
	}
	if r.Meta.Seed != 0 {
		fmt.Fprintf(&b, "seed %d\n", r.Meta.Seed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A Summary contains the figures of a check.
type Summary struct {
	Writes   int `json:"writes"`
	Watchers int `json:"watchers"`
	// Sessions counts the requested watches. Connections counts the network connections; a
	// session has several if its client reconnects.
	Sessions    int `json:"sessions"`
	Connections int `json:"connections"`
	// Events counts the checked events. Snapshots counts the checked sets of initial
	// events.
	Events         int `json:"events"`
	Bookmarks      int `json:"bookmarks"`
	Snapshots      int `json:"snapshots"`
	Lists          int `json:"lists"`
	InformerStates int `json:"informerStates"`
	// Resumes counts the connections that continued after an earlier one. Expired counts
	// the sessions that ended with Expired. Relists counts the states that were fetched
	// after an Expired.
	Resumes     int `json:"resumes"`
	Expired     int `json:"expired"`
	Relists     int `json:"relists"`
	Compactions int `json:"compactions"`
	// Faults counts the faults that took effect, by kind. ConnectionsEndedByFault counts the
	// connections that faults ended, by the kind of the fault.
	Faults                  map[string]int `json:"faults,omitempty"`
	ConnectionsEndedByFault map[string]int `json:"connectionsEndedByFault,omitempty"`

	Violations  int               `json:"violations"`
	ByGuarantee map[Guarantee]int `json:"byGuarantee,omitempty"`
	// ConvergeP99 and ConvergeMax are the 99th percentile and the maximum of the time that watchers
	// needed to reach the newest version after a [Heal].
	ConvergeP99 time.Duration `json:"convergeP99"`
	ConvergeMax time.Duration `json:"convergeMax"`
	// Took is the duration of the check.
	Took time.Duration `json:"took"`

	converged []time.Duration
}

// String returns s as a few lines of text.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d violations; %d writes, %d watchers, %d sessions with %d connections\n", s.Violations, s.Writes,
		s.Watchers, s.Sessions, s.Connections)
	fmt.Fprintf(&b, "checked %d events, %d bookmarks, %d snapshots, %d lists, %d informer states in %s\n",
		s.Events, s.Bookmarks, s.Snapshots, s.Lists, s.InformerStates, roundDuration(s.Took))
	fmt.Fprintf(&b, "%d resumes, %d expired, %d relists, %d compactions\n", s.Resumes,
		s.Expired, s.Relists, s.Compactions)
	fmt.Fprintf(&b, "faults: %s; connections ended by faults: %s\n", counts(s.Faults),
		counts(s.ConnectionsEndedByFault))
	fmt.Fprintf(&b, "converged within %s, 99%% within %s", roundDuration(s.ConvergeMax), roundDuration(s.ConvergeP99))
	for _, r := range Guarantees() {
		if n := s.ByGuarantee[r]; n > 0 {
			fmt.Fprintf(&b, "\n%d × %s", n, r)
		}
	}
	return b.String()
}

// counts formats m in the order of its keys.
func counts(m map[string]int) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(parts, ", ")
}

func (v *verifier) report(r Guarantee, want, got string) { v.check.add(v.violation(r, want, got)) }

func (v *verifier) violation(r Guarantee, want, got string) Violation {
	found := Violation{
		Guarantee: r, Watcher: v.session.Watcher, Session: v.sessionNumber, Transport: v.session.Transport,
		Event: v.eventIndex, Want: want, Got: got,
	}
	if v.eventIndex >= 0 {
		found.At = v.session.Events[v.eventIndex].ReceivedAt
	}
	return found
}

func describe(e *ReceivedEvent) string { return describeEvent(e.Type, e.Key, e.Version, e.Fingerprint) }

func describeEvent(t EventType, key Key, v listwatch.Version, p Fingerprint) string {
	s := t.String()
	if key != (Key{}) {
		s += " " + key.String()
	}
	s += fmt.Sprintf(" at version %d", v)
	if p != 0 {
		s += " with fingerprint " + p.String()
	}
	return s
}

// roundDuration rounds d for display.
func roundDuration(d time.Duration) string { return d.Round(time.Microsecond).String() }
