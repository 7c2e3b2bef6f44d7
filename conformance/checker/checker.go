package checker

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
