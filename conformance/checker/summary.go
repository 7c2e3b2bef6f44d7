package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

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

// roundDuration rounds d for display.
func roundDuration(d time.Duration) string { return d.Round(time.Microsecond).String() }
