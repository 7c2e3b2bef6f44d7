package checker

import (
	"fmt"
	"maps"
	"slices"
)

// Requirements are minimum counts. A run that does not reach them proves nothing and fails.
// Zero fields require nothing.
type Requirements struct {
	Writes    int `json:"writes,omitempty"`
	Events    int `json:"events,omitempty"`
	Bookmarks int `json:"bookmarks,omitempty"`
	Lists     int `json:"lists,omitempty"`
	Resumes   int `json:"resumes,omitempty"`
	Expired   int `json:"expired,omitempty"`
	Relists   int `json:"relists,omitempty"`
	// Faults are the minimum counts of the faults that took effect, by kind.
	// ConnectionsEndedByFault are the minimum counts of the connections that faults ended, by kind
	// of the fault.
	Faults                  map[string]int `json:"faults,omitempty"`
	ConnectionsEndedByFault map[string]int `json:"connectionsEndedByFault,omitempty"`
}

// IsZero reports whether r requires nothing.
func (r Requirements) IsZero() bool {
	return r.Writes|r.Events|r.Bookmarks|r.Lists|r.Resumes|r.Expired|r.Relists == 0 && len(r.Faults) == 0 &&
		len(r.ConnectionsEndedByFault) == 0
}

// Missing returns one line for each requirement that s does not meet.
func (r Requirements) Missing(s *Summary) []string {
	var lines []string
	atLeast := func(what string, want, got int) {
		if got < want {
			lines = append(lines, fmt.Sprintf("%d %s, want at least %d", got, what, want))
		}
	}
	atLeast("writes", r.Writes, s.Writes)
	atLeast("events", r.Events, s.Events)
	atLeast("bookmarks", r.Bookmarks, s.Bookmarks)
	atLeast("lists", r.Lists, s.Lists)
	atLeast("resumes", r.Resumes, s.Resumes)
	atLeast("sessions that got Expired", r.Expired, s.Expired)
	atLeast("relists", r.Relists, s.Relists)
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		atLeast("faults of kind "+kind, r.Faults[kind], s.Faults[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(r.ConnectionsEndedByFault)) {
		atLeast("connections ended by "+kind, r.ConnectionsEndedByFault[kind], s.ConnectionsEndedByFault[kind])
	}
	return lines
}
