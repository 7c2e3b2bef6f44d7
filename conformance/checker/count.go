package checker

import (
	"cmp"
	"slices"
	"time"
)

// count fills in the figures of the summary that were not counted during the verification.
func (c *checker) count() {
	s, h := &c.summary, c.history
	s.Writes, s.Sessions, s.Lists = len(h.Writes), len(h.Sessions), len(h.Lists)
	s.InformerStates, s.Compactions = len(h.InformerStates), len(h.Compactions)
	s.Faults, s.ConnectionsEndedByFault = make(map[string]int), make(map[string]int)
	for _, f := range h.Faults {
		s.Faults[f.Kind]++
	}
	watchers := make(map[string][]*Session)
	for _, session := range h.Sessions {
		watchers[session.Watcher] = append(watchers[session.Watcher], session)
	}
	for name, sessions := range watchers {
		c.countSessions(sessions)
		c.countConnectionsEndedByFault(name, sessions)
	}
	slices.Sort(s.converged)
	if n := len(s.converged); n > 0 {
		s.ConvergeMax = s.converged[n-1]
		s.ConvergeP99 = s.converged[(n*99+99)/100-1]
	}
}

func (c *checker) countSessions(sessions []*Session) {
	s := &c.summary
	expired := false // the watcher got Expired and has not fetched the state since
	for i, session := range sessions {
		s.Connections += max(1, len(session.Connections))
		if expired && (session.Request.InitialEvents || session.Request.Version != 0) {
			s.Relists++
			expired = false
		} else if i > 0 && session.Request.Version != 0 {
			s.Resumes++
		}
		for n, connection := range session.Connections {
			if n > 0 && connection.From != 0 {
				s.Resumes++
			}
		}
		if session.End.Expired {
			s.Expired++
			expired = true
		}
	}
}

// A lostConnection is a connection that ended before its watcher closed it.
type lostConnection struct {
	opened, lost time.Duration
	clean        bool
}

// lostConnections returns the connections that ended before their watcher closed them, in the
// order of their ends. A session without recorded connections counts as one connection,
// unless it ended with Expired.
func lostConnections(sessions []*Session) []lostConnection {
	var all []lostConnection
	add := func(opened, lost time.Duration, reason string) {
		if lost > 0 && reason != "" {
			all = append(all, lostConnection{opened, lost, reason == cleanEnd})
		}
	}
	for _, s := range sessions {
		if len(s.Connections) == 0 && !s.End.Expired {
			add(s.Opened, s.End.At, s.End.Error)
		}
		for _, connection := range s.Connections {
			add(connection.Opened, connection.Lost, connection.Error)
		}
	}
	slices.SortStableFunc(all, func(a, b lostConnection) int { return cmp.Compare(a.lost, b.lost) })
	return all
}

// countConnectionsEndedByFault attributes the end of each connection to the last fault during
// its lifetime. A graceful fault explains only a clean end. Any other fault explains only an
// end with an error.
func (c *checker) countConnectionsEndedByFault(watcher string, sessions []*Session) {
	var faults []Fault
	for _, f := range c.history.Faults {
		if f.Watcher == "" || f.Watcher == watcher {
			faults = append(faults, f)
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	next := 0
	for _, s := range lostConnections(sessions) {
		kind := ""
		for ; next < len(faults) && faults[next].At <= s.lost; next++ {
			if f := faults[next]; f.At >= s.opened && f.Graceful == s.clean {
				kind = f.Kind
			}
		}
		if kind != "" {
			c.summary.ConnectionsEndedByFault[kind]++
		}
	}
}
