package collector

import (
	"context"

	"github.com/listwatch/listwatch"
)

// Start starts the goroutine.
func (c *Collector) Start() {
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.known, c.dependents = map[reference]listwatch.Metadata{}, map[string]map[reference]struct{}{}
	c.gone = map[string]struct{}{}
	c.worker.Go(c.run) // ends when Stop cancels the context
}

// Stop ends the goroutine and waits for its end.
func (c *Collector) Stop() {
	c.cancel()
	c.worker.Wait()
}

func (c *Collector) run() {
	for {
		r, err := c.queue.Get(c.ctx)
		if err != nil {
			return
		}
		if err := c.process(r); err != nil {
			c.queue.AddRateLimited(r, 0)
		} else {
			c.queue.Forget(r)
		}
		c.queue.Done(r)
	}
}

// process acts on the present state of the object r.
func (c *Collector) process(r reference) error {
	s, ok := c.named(r.collection)
	if !ok {
		c.index(r, nil) // the objects of a definition are gone with it
		return nil
	}
	m, err := metadataOf(c.ctx, s.Collection, r.key)
	if err != nil {
		return err
	}
	before := c.known[r]
	c.index(r, m)
	if m == nil {
		return nil
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
	case isDeleted && (before.DeletionTimestamp == nil || before.UID != m.UID):
		// Dependents that were created before the deletion may still be in the queue. They must be
		// known before the policy applies to them.
		c.queue.Add(r)
		return nil
	case isDeleted:
		return c.propagate(s.Collection, m)
	}
	return c.collect(s, m)
}
