package checker

import (
	"fmt"
	"io"
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
