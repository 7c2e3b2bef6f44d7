package collector

import (
	"github.com/listwatch/listwatch"
)

// Start starts the goroutine.
func (c *Collector) Start() {
	c.known, c.dependents = map[reference]listwatch.Metadata{}, map[string]map[reference]struct{}{}
	c.gone, c.kinds = map[string]string{}, map[string]string{}
	c.noted = map[reference]error{}
	c.attempts = attempts{map[reference]struct{}{}, map[string]struct{}{}}
	c.worker.start(c.run)
}

// Stop ends the goroutine and waits for its end.
func (c *Collector) Stop() {
	c.worker.stop()
}

// run notes all changes before it acts on any of them. Otherwise it might apply a policy to an
// owner whose dependents it does not know yet.
func (c *Collector) run() {
	for {
		r, err := c.queue.Get(c.worker.ctx)
		if err != nil {
			return
		}
		c.noted[r] = c.note(r)
		c.queue.Done(r)
		if c.queue.Len() > 0 {
			continue
		}
		for r, err := range c.noted {
			delete(c.noted, r)
			if err == nil {
				err = c.act(r)
			}
			if err != nil {
				c.queue.AddRateLimited(r, 0)
			} else {
				c.queue.Forget(r)
			}
		}
	}
}

// note reads the present metadata of the object r.
func (c *Collector) note(r reference) error {
	s, ok := c.named(r.collection)
	if !ok {
		c.index(r, nil) // the objects of a definition are gone with it
		return nil
	}
	m, err := metadataOf(c.worker.ctx, s.Collection, r.key)
	if err == nil {
		c.index(r, m)
	}
	return err
}

// act does what the present state of the object r requires.
func (c *Collector) act(r reference) error {
	s, ok := c.named(r.collection)
	if !ok {
		return nil
	}
	m, err := metadataOf(c.worker.ctx, s.Collection, r.key)
	if err != nil || m == nil {
		return err
	}
	isDeleted := m.DeletionTimestamp != nil
	if isDeleted && c.Namespaces && r.collection == namespaces {
		if err := c.emptyNamespace(s.Collection, m); err != nil {
			return err
		}
	}
	if isDeleted && r.collection == definitions {
		if err := c.emptyDefinition(s.Collection, m); err != nil {
			return err
		}
	}
	switch {
	case !c.Owners:
		return nil
	case isDeleted:
		return c.propagate(s.Collection, m)
	}
	return c.collect(s, m)
}
