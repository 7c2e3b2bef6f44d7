package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Requirements are the least that a run must have been put through, lest it prove nothing. Zero: no demand.
type Requirements struct {
	Writes    int `json:"writes,omitempty"`
	Events    int `json:"events,omitempty"`
	Bookmarks int `json:"bookmarks,omitempty"`
	Lists     int `json:"lists,omitempty"`
	Resumes   int `json:"resumes,omitempty"`
	Expired   int `json:"expired,omitempty"`
	Relists   int `json:"relists,omitempty"`
	// Bit is how many faults of a kind must have bitten, Ended how many streams must have ended of one.
	Faults       map[string]int `json:"bit,omitempty"`
	EndedByFault map[string]int `json:"ended,omitempty"`
}

// IsZero reports whether r demands nothing.
func (r Requirements) IsZero() bool {
	return r.Writes|r.Events|r.Bookmarks|r.Lists|r.Resumes|r.Expired|r.Relists == 0 && len(r.Faults) == 0 && len(r.EndedByFault) == 0
}

// Missing returns what s lacks, a line each; nothing where it was hard enough.
func (r Requirements) Missing(s *Summary) []string {
	var lines []string
	least := func(what string, want, got int) {
		if got < want {
			lines = append(lines, fmt.Sprintf("%d %s, want at least %d", got, what, want))
		}
	}
	least("writes", r.Writes, s.Writes)
	least("events", r.Events, s.Events)
	least("bookmarks", r.Bookmarks, s.Bookmarks)
	least("lists", r.Lists, s.Lists)
	least("resumes", r.Resumes, s.Resumes)
	least("streams that were told Expired", r.Expired, s.Expired)
	least("relists", r.Relists, s.Relists)
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		least("faults of kind "+kind+" that bit", r.Faults[kind], s.Faults[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(r.EndedByFault)) {
		least("streams that ended of "+kind, r.EndedByFault[kind], s.EndedByFault[kind])
	}
	return lines
}

// count fills in what the walks did not count.
func (c *checker) count() {
	s, h := &c.summary, c.history
	s.Writes, s.Sessions, s.Lists, s.InformerStates, s.Compactions = len(h.Writes), len(h.Sessions), len(h.Lists), len(h.InformerStates), len(h.Compactions)
	s.Faults, s.EndedByFault = make(map[string]int), make(map[string]int)
	for _, f := range h.Faults {
		s.Faults[f.Kind]++
	}
	watchers := make(map[string][]*Session)
	for _, session := range h.Sessions {
		watchers[session.Watcher] = append(watchers[session.Watcher], session)
	}
	for name, sessions := range watchers {
		c.countSessions(sessions)
		c.countEnded(name, sessions)
	}
	slices.Sort(s.converged)
	if n := len(s.converged); n > 0 {
		s.ConvergeMax = s.converged[n-1]
		s.ConvergeP99 = s.converged[(n*99+99)/100-1]
	}
}

func (c *checker) countSessions(sessions []*Session) {
	s := &c.summary
	lost := false // the watcher was told Expired and has not had a state since
	for i, session := range sessions {
		s.Connections += max(1, len(session.Connections))
		if lost && (session.Request.InitialEvents || session.Request.Version != 0) {
			s.Relists++
			lost = false
		} else if i > 0 && session.Request.Version != 0 {
			s.Resumes++
		}
		for n, stream := range session.Connections {
			if n > 0 && stream.From != 0 {
				s.Resumes++
			}
		}
		if session.End.Expired {
			s.Expired++
			lost = true
		}
	}
}

// A span is when a stream was open, and whether it came to a clean end.
type span struct {
	opened, lost time.Duration
	clean        bool
}

// spansOf returns the streams of sessions that were lost, but for those that were told why.
func spansOf(sessions []*Session) []span {
	var spans []span
	add := func(opened, lost time.Duration, why string) {
		if lost > 0 && why != "" {
			spans = append(spans, span{opened, lost, why == cleanEnd})
		}
	}
	for _, s := range sessions {
		if len(s.Connections) == 0 && !s.End.Expired {
			add(s.Opened, s.End.At, s.End.Error)
		}
		for _, stream := range s.Connections {
			add(stream.Opened, stream.Lost, stream.Error)
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.lost, b.lost) })
	return spans
}

// countEnded lays the end of each stream at the door of the last fault that bit while it was open, and that ends streams in this way.
func (c *checker) countEnded(watcher string, sessions []*Session) {
	var faults []Fault
	for _, f := range c.history.Faults {
		if f.Watcher == "" || f.Watcher == watcher {
			faults = append(faults, f)
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	next := 0
	for _, s := range spansOf(sessions) {
		kind := ""
		for ; next < len(faults) && faults[next].At <= s.lost; next++ {
			if f := faults[next]; f.At >= s.opened && f.Graceful == s.clean {
				kind = f.Kind
			}
		}
		if kind != "" {
			c.summary.EndedByFault[kind]++
		}
	}
}
