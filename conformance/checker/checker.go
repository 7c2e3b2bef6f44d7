package checker

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
)

// Options configures [Check]. A nil pointer means the zero Options.
type Options struct {
	// MaxViolations limits the violations that the report contains; its summary counts
	// all violations. If zero, the limit is 100. A negative value means no limit.
	MaxViolations int
}

const defaultViolations = 100

// Check verifies h against all guarantees. The report contains the violations; see
// [Report.Err].
//
// Check returns an error of code Invalid if h is inconsistent: its writes contradict each
// other, a selector is invalid, or a watcher changes its selection between sessions.
func Check(h *History, o *Options) (*Report, error) {
	began := time.Now()
	if o == nil {
		o = &Options{}
	}
	l, err := newWriteLog(h)
	if err != nil {
		return nil, err
	}
	c := &checker{history: h, writes: l, projections: make(map[Selection]*projection), maxViolations: o.MaxViolations}
	if c.maxViolations == 0 {
		c.maxViolations = defaultViolations
	}
	c.summary.ByGuarantee = make(map[Guarantee]int)
	for _, f := range h.Compactions {
		c.certainFloor.add(f.Done, f.Low)
		c.possibleFloor.add(f.Began, f.High)
	}
	c.certainFloor.sort()
	c.possibleFloor.sort()
	for _, step := range []func() error{c.verifyWatchers, c.checkLists, c.checkInformerStates} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c.checkHandlerCalls()
	c.verifyStates()
	c.count()
	c.summary.Took = time.Since(began)
	return &Report{Meta: h.Meta, Summary: c.summary, Violations: c.violations}, nil
}

// A checker is one check in progress.
type checker struct {
	// Immutable after construction.
	history       *History
	writes        *writeLog
	maxViolations int
	// The floor is the version up to which the history was compacted. certainFloor maps a time to
	// the floor that had certainly been reached by then. possibleFloor maps a time to the highest
	// floor that may have been reached.
	certainFloor, possibleFloor versionsByTime

	projections map[Selection]*projection
	states      []observedState
	violations  []Violation
	summary     Summary
}

func (c *checker) add(v Violation) {
	c.summary.Violations++
	c.summary.ByGuarantee[v.Guarantee]++
	if c.maxViolations < 0 || len(c.violations) < c.maxViolations {
		c.violations = append(c.violations, v)
	}
}

func (c *checker) projection(s Selection) (*projection, error) {
	if p := c.projections[s]; p != nil {
		return p, nil
	}
	p, err := newProjection(c.writes, s)
	if err != nil {
		return nil, err
	}
	c.projections[s] = p
	return p, nil
}

// verifyWatchers verifies all watchers in the order of their first sessions.
func (c *checker) verifyWatchers() error {
	sessions := make(map[string][]int)
	var watchers []string
	for n, s := range c.history.Sessions {
		if sessions[s.Watcher] == nil {
			watchers = append(watchers, s.Watcher)
		}
		sessions[s.Watcher] = append(sessions[s.Watcher], n)
	}
	listed := make(map[string]map[listwatch.Version]bool)
	for _, l := range c.history.Lists {
		if l.Watcher == "" {
			continue
		}
		if listed[l.Watcher] == nil {
			listed[l.Watcher] = make(map[listwatch.Version]bool)
		}
		listed[l.Watcher][l.Version] = true
	}
	for _, name := range watchers {
		if err := c.verifyWatcher(sessions[name], listed[name]); err != nil {
			return err
		}
	}
	c.summary.Watchers = len(watchers)
	return nil
}

func (c *checker) verifyWatcher(numbers []int, listed map[listwatch.Version]bool) error {
	first := c.history.Sessions[numbers[0]]
	for _, n := range numbers {
		if s := c.history.Sessions[n]; s.Request.Selection != first.Request.Selection {
			return invalid(fmt.Sprintf("watcher %q: session %d has a different selection than the first session; "+
				"record it under another watcher name", s.Watcher, n))
		}
	}
	p, err := c.projection(first.Request.Selection)
	if err != nil {
		return err
	}
	w := &verifier{check: c, projection: p, listed: listed, convergence: newConvergence(c.history, p)}
	w.run(numbers)
	return nil
}

func (c *checker) checkLists() error {
	for i := range c.history.Lists {
		l := &c.history.Lists[i]
		p, err := c.projection(l.Request.Selection)
		if err != nil {
			return err
		}
		c.checkList(l, p, Violation{
			Watcher: l.Watcher, Session: -1, Event: -1, At: l.ReceivedAt,
			Got: fmt.Sprintf("list %d at version %d", i, l.Version),
		})
	}
	return nil
}

func (c *checker) checkList(l *List, p *projection, where Violation) {
	report := func(r Guarantee, want string) {
		v := where
		v.Guarantee, v.Want = r, want
		c.add(v)
	}
	switch fresh := c.writes.acked.before(l.Began); {
	case l.After != Key{}: // only the first page must be fresh
	case l.Request.Version != 0 && l.Request.Exact && l.Version != l.Request.Version:
		report(ListExact, fmt.Sprintf("version %d, as requested", l.Request.Version))
	case l.Version < l.Request.Version:
		report(Fresh, fmt.Sprintf("a state not older than version %d, the requested version", l.Request.Version))
	case l.Request.Version == 0 && !l.Request.AnyVersion && l.Version < fresh:
		report(Fresh,
			fmt.Sprintf("a state not older than version %d, which was acknowledged before the request was sent", fresh))
	}
	if most := c.writes.started.upTo(l.ReceivedAt); l.ReceivedAt != 0 && l.Version > most &&
		!c.history.Meta.SharedVersions {
		report(ListExact, fmt.Sprintf("at most version %d: no later write had been requested", most))
		return
	}
	c.verifyItems(p, l.Items, ListExact, where)
	state := observedState{
		version: l.Version, projection: p, items: l.Items, guarantee: ListExact, violation: where, after: l.After,
	}
	if l.More && len(l.Items) > 0 {
		state.bounded, state.upTo = true, l.Items[len(l.Items)-1].Key
	}
	c.states = append(c.states, state)
}

// verifyItems reports the first item that no write produced or that the selection does not
// contain.
func (c *checker) verifyItems(p *projection, items []Item, r Guarantee, where Violation) {
	for _, it := range items {
		guarantee, want := c.verifyItem(p, it)
		if guarantee == 0 {
			continue
		}
		v := where
		v.Guarantee, v.Want = r, want
		v.Got = describeEvent(Added, it.Key, it.Version, it.Fingerprint) + " in " + where.Got
		c.add(v)
		return
	}
}

// checkInformerStates verifies the reported states of informers.
func (c *checker) checkInformerStates() error {
	for i := range c.history.InformerStates {
		h := &c.history.InformerStates[i]
		p, err := c.projection(h.Selection)
		if err != nil {
			return err
		}
		where := Violation{
			Watcher: h.Informer, Session: -1, Event: -1,
			Got: fmt.Sprintf("informer state %d at version %d", i, h.Version),
		}
		c.verifyItems(p, h.Items, InformerExact, where)
		c.states = append(c.states, observedState{
			version: h.Version, projection: p, items: h.Items, guarantee: InformerExact, violation: where,
		})
	}
	return nil
}

// checkHandlerCalls verifies the order of the handler calls of each informer and key.
func (c *checker) checkHandlerCalls() {
	type informerKey struct {
		informer string
		key      Key
	}
	type lastCall struct {
		version listwatch.Version
		exists  bool
	}
	last := make(map[informerKey]lastCall)
	for i := range c.history.HandlerCalls {
		call := &c.history.HandlerCalls[i]
		key := informerKey{call.Informer, call.Key}
		was := last[key]
		want := ""
		switch {
		case call.Version < was.version || call.Version == was.version && call.Type == Added:
			want = fmt.Sprintf("%s with a version newer than %d", call.Key, was.version)
		case (call.Type == Added) == was.exists:
			want = fmt.Sprintf("ADDED for a new object, MODIFIED or DELETED for an existing one; exists after "+
				"version %d: %v", was.version, was.exists)
		}
		if want != "" {
			c.add(Violation{
				Guarantee: InformerExact, Watcher: call.Informer, Session: -1, Event: -1, Want: want,
				Got: describeEvent(call.Type, call.Key, call.Version, 0) + fmt.Sprintf(", handler call %d", i),
			})
		}
		last[key] = lastCall{max(call.Version, was.version), call.Type != Deleted}
	}
}
