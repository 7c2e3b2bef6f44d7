package checker

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
)

// Options say how to check. The zero Options are sound, and so is a nil pointer.
type Options struct {
	// Violations is how many are kept in the report; all are counted. Zero: 100; negative: all.
	MaxViolations int
}

// defaultViolations is enough to see a pattern.
const defaultViolations = 100

// Check judges h. The error, of code Invalid, says that h is no history: its writes contradict each other, or a selector is none.
// Violations are in the report; see [Report.Err].
func Check(h *History, o *Options) (*Report, error) {
	began := time.Now()
	if o == nil {
		o = &Options{}
	}
	l, err := newLedger(h)
	if err != nil {
		return nil, err
	}
	c := &checker{history: h, ledger: l, projections: make(map[Selection]*projection), keep: o.MaxViolations}
	if c.keep == 0 {
		c.keep = defaultViolations
	}
	c.summary.ByGuarantee = make(map[Guarantee]int)
	for _, f := range h.Compactions {
		c.gone.add(f.Done, f.Low)
		c.maybeGone.add(f.Began, f.High)
	}
	c.gone.sort()
	c.maybeGone.sort()
	for _, step := range []func() error{c.walkAll, c.checkLists, c.checkInformers} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c.settleClaims()
	c.count()
	c.summary.Took = time.Since(began)
	return &Report{Meta: h.Meta, Summary: c.summary, Violations: c.violations}, nil
}

// A checker is one check under way.
type checker struct {
	// Immutable once the check has begun.
	history *History
	ledger  *ledger
	keep    int
	// gone is the floor that certainly held by a time, maybeGone the highest that may have.
	gone, maybeGone timeline

	projections map[Selection]*projection
	claims      []claim
	violations  []Violation
	summary     Summary
}

func (c *checker) add(v Violation) {
	c.summary.Violations++
	c.summary.ByGuarantee[v.Guarantee]++
	if c.keep < 0 || len(c.violations) < c.keep {
		c.violations = append(c.violations, v)
	}
}

func (c *checker) projection(s Selection) (*projection, error) {
	if p := c.projections[s]; p != nil {
		return p, nil
	}
	p, err := newProjection(c.ledger, s)
	if err != nil {
		return nil, err
	}
	c.projections[s] = p
	return p, nil
}

// walkAll walks all watchers, in the order of their first sessions.
func (c *checker) walkAll() error {
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
		if err := c.walk(sessions[name], listed[name]); err != nil {
			return err
		}
	}
	c.summary.Watchers = len(watchers)
	return nil
}

func (c *checker) walk(numbers []int, listed map[listwatch.Version]bool) error {
	first := c.history.Sessions[numbers[0]]
	for _, n := range numbers {
		if s := c.history.Sessions[n]; s.Request.Selection != first.Request.Selection {
			return invalid(fmt.Sprintf("watcher %q has session %d with another selection: that is another watcher", s.Watcher, n))
		}
	}
	p, err := c.projection(first.Request.Selection)
	if err != nil {
		return err
	}
	w := &walk{check: c, p: p, listed: listed, goals: newGoals(c.history, p)}
	w.run(numbers)
	return nil
}

// checkLists judges lists.
func (c *checker) checkLists() error {
	for i := range c.history.Lists {
		l := &c.history.Lists[i]
		p, err := c.projection(l.Request.Selection)
		if err != nil {
			return err
		}
		c.checkList(l, p, Violation{
			Watcher: l.Watcher, Session: -1, Event: -1, At: l.ReceivedAt, Got: fmt.Sprintf("list %d at version %d", i, l.Version),
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
	switch fresh := c.ledger.acked.before(l.Began); {
	case l.After != Key{}: // a later page shows what the first one showed
	case l.Request.Version != 0 && l.Request.Exact && l.Version != l.Request.Version:
		report(ListExact, fmt.Sprintf("version %d, as was asked for", l.Request.Version))
	case l.Version < l.Request.Version:
		report(Fresh, fmt.Sprintf("a state not older than version %d, which was asked for", l.Request.Version))
	case l.Request.Version == 0 && !l.Request.AnyVersion && l.Version < fresh:
		report(Fresh, fmt.Sprintf("a state not older than version %d, which was acknowledged before the request", fresh))
	}
	if most := c.ledger.begun.by(l.ReceivedAt); l.ReceivedAt != 0 && l.Version > most && !c.history.Meta.SharedVersions {
		report(ListExact, fmt.Sprintf("a version up to %d: no later write had begun", most))
		return
	}
	c.claimItems(p, l.Items, ListExact, where)
	cl := claim{version: l.Version, p: p, items: l.Items, rule: ListExact, where: where, after: l.After}
	if l.More && len(l.Items) > 0 {
		cl.bounded, cl.upTo = true, l.Items[len(l.Items)-1].Key
	}
	c.claims = append(c.claims, cl)
}

// claimItems reports the first object that no write left as it is.
func (c *checker) claimItems(p *projection, items []Item, r Guarantee, where Violation) {
	for _, it := range items {
		rule, want := c.item(p, it)
		if rule == 0 {
			continue
		}
		v := where
		v.Guarantee, v.Want = r, want
		v.Got = describeEvent(Added, it.Key, it.Version, it.Fingerprint) + " in " + where.Got
		c.add(v)
		return
	}
}

// checkInformers judges what informers hold and what their handlers were told.
func (c *checker) checkInformers() error {
	for i := range c.history.InformerStates {
		h := &c.history.InformerStates[i]
		p, err := c.projection(h.Selection)
		if err != nil {
			return err
		}
		where := Violation{Watcher: h.Informer, Session: -1, Event: -1, Got: fmt.Sprintf("holding %d at version %d", i, h.Version)}
		c.claimItems(p, h.Items, InformerExact, where)
		c.claims = append(c.claims, claim{version: h.Version, p: p, items: h.Items, rule: InformerExact, where: where})
	}
	type place struct {
		informer string
		key      Key
	}
	type known struct {
		version listwatch.Version
		there   bool
	}
	last := make(map[place]known)
	for i := range c.history.HandlerCalls {
		ch := &c.history.HandlerCalls[i]
		at := place{ch.Informer, ch.Key}
		was := last[at]
		want := ""
		switch {
		case ch.Version < was.version || ch.Version == was.version && ch.Type == Added:
			want = fmt.Sprintf("%s after version %d", ch.Key, was.version)
		case (ch.Type == Added) == was.there:
			want = fmt.Sprintf("ADDED for what is not there, and MODIFIED or DELETED for what is; last was version %d, there: %v", was.version, was.there)
		}
		if want != "" {
			c.add(Violation{
				Guarantee: InformerExact, Watcher: ch.Informer, Session: -1, Event: -1, Want: want,
				Got: describeEvent(ch.Type, ch.Key, ch.Version, 0) + fmt.Sprintf(", change %d", i),
			})
		}
		last[at] = known{max(ch.Version, was.version), ch.Type != Deleted}
	}
	return nil
}
