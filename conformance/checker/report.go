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

// A Violation is one guarantee that was broken, and where.
type Violation struct {
	Guarantee Guarantee `json:"rule"`
	// Watcher is who was wronged. Session and Frame are numbers, of the session in the history and of the frame in the session;
	// negative: it is about none.
	Watcher   string `json:"watcher,omitempty"`
	Session   int    `json:"session"`
	Transport string `json:"transport,omitempty"`
	Event     int    `json:"frame"`
	// At is when the frame came; zero: not known.
	At time.Duration `json:"at,omitempty"`
	// Want and Got say what should have been there, and what was.
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Error returns the violation in four lines: rule, place, want and got.
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
		fmt.Fprintf(&b, "frame %d ", v.Event)
	}
	if v.At != 0 {
		fmt.Fprintf(&b, "after %s", elapsed(v.At))
	}
	fmt.Fprintf(&b, "\n  want %s\n  got  %s", v.Want, v.Got)
	return b.String()
}

// A Report is the outcome of a check.
type Report struct {
	Meta    Meta    `json:"meta"`
	Summary Summary `json:"summary"`
	// Violations are the first ones; Summary counts all.
	Violations []Violation `json:"violations,omitempty"`
}

// Err returns nil where nothing was violated and the run was hard enough to prove that; otherwise an error of code Corrupt or, for a run that
// was too easy, Invalid, whose message is the whole report.
func (r *Report) Err() error {
	easy := r.Meta.Requirements.Missing(&r.Summary)
	if r.Summary.Violations == 0 && len(easy) == 0 {
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

// WriteText writes r for people.
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
		b.WriteString("too easy: " + line + "\n")
	}
	if r.Meta.Seed != 0 {
		fmt.Fprintf(&b, "seed %d\n", r.Meta.Seed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A Summary says what a history was worth.
type Summary struct {
	Writes   int `json:"writes"`
	Watchers int `json:"watchers"`
	// Sessions are the watches that were asked for; Streams the connections, of which a session of a client that resumes by
	// itself has several.
	Sessions    int `json:"sessions"`
	Connections int `json:"streams"`
	// Events are those that were checked; Snapshots the states that watches began with.
	Events         int `json:"events"`
	Bookmarks      int `json:"bookmarks"`
	Snapshots      int `json:"snapshots"`
	Lists          int `json:"lists"`
	InformerStates int `json:"holdings"`
	// Resumes are streams that went on where another one had ended, Expired those that were told that the history is gone, Relists
	// new states got after that.
	Resumes     int `json:"resumes"`
	Expired     int `json:"expired"`
	Relists     int `json:"relists"`
	Compactions int `json:"floors"`
	// Bit is how many faults bit, by kind; Ended how many streams ended of them.
	Faults       map[string]int `json:"bit,omitempty"`
	EndedByFault map[string]int `json:"ended,omitempty"`

	Violations  int               `json:"violations"`
	ByGuarantee map[Guarantee]int `json:"byRule,omitempty"`
	// ConvergeP99 and ConvergeMax are how long watchers took to come to the newest version after a heal.
	ConvergeP99 time.Duration `json:"convergeP99"`
	ConvergeMax time.Duration `json:"convergeMax"`
	// Took is how long the check took.
	Took time.Duration `json:"took"`

	converged []time.Duration
}

// String returns s in a few lines.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d violations; %d writes, %d watchers, %d sessions of %d streams\n", s.Violations, s.Writes, s.Watchers, s.Sessions, s.Connections)
	fmt.Fprintf(&b, "checked %d events, %d bookmarks, %d snapshots, %d lists, %d informer states in %s\n",
		s.Events, s.Bookmarks, s.Snapshots, s.Lists, s.InformerStates, elapsed(s.Took))
	fmt.Fprintf(&b, "%d resumes, %d expired, %d relists, %d compactions\n", s.Resumes, s.Expired, s.Relists, s.Compactions)
	fmt.Fprintf(&b, "faults that bit: %s; that ended a stream: %s\n", counts(s.Faults), counts(s.EndedByFault))
	fmt.Fprintf(&b, "converged within %s, 99%% within %s", elapsed(s.ConvergeMax), elapsed(s.ConvergeP99))
	for _, r := range Guarantees() {
		if n := s.ByGuarantee[r]; n > 0 {
			fmt.Fprintf(&b, "\n%d × %s", n, r)
		}
	}
	return b.String()
}

// counts returns m in the order of its keys.
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

func (w *walk) report(r Guarantee, want, got string) { w.check.add(w.violation(r, want, got)) }

func (w *walk) violation(r Guarantee, want, got string) Violation {
	v := Violation{
		Guarantee: r, Watcher: w.session.Watcher, Session: w.number, Transport: w.session.Transport, Event: w.frame, Want: want, Got: got,
	}
	if w.frame >= 0 {
		v.At = w.session.Events[w.frame].ReceivedAt
	}
	return v
}

func describeFrame(f *ReceivedEvent) string {
	return describeEvent(f.Type, f.Key, f.Version, f.Fingerprint)
}

// describeEvent returns an event in words.
func describeEvent(t EventType, key Key, v listwatch.Version, p Fingerprint) string {
	s := t.String()
	if key != (Key{}) {
		s += " " + key.String()
	}
	s += fmt.Sprintf(" at version %d", v)
	if p != 0 {
		s += " with payload " + p.String()
	}
	return s
}

// elapsed is a time for people.
func elapsed(d time.Duration) string { return d.Round(time.Microsecond).String() }
