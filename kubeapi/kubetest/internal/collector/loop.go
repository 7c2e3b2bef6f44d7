package collector

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
)

// Start starts the goroutine.
func (c *Collector) Start() {
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.known, c.dependents = map[reference]listwatch.Metadata{}, map[string]map[reference]struct{}{}
	c.gone, c.kinds = map[string]string{}, map[string]string{}
	c.noted, c.collected = map[reference]error{}, map[reference]int{}
	c.worker.Go(c.run) // ends when Stop cancels the context
}

// Stop ends the goroutine and waits for its end.
func (c *Collector) Stop() {
	c.cancel()
	c.worker.Wait()
}

// run notes all changes before it acts on any of them. Otherwise it might apply a policy to an
// owner whose dependents it does not know yet.
func (c *Collector) run() {
	for {
		r, err := c.queue.Get(c.ctx)
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
	m, err := metadataOf(c.ctx, s.Collection, r.key)
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
	m, err := metadataOf(c.ctx, s.Collection, r.key)
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

// In each period, the collector deletes a few objects of the same name and of the same owner at
// once, and waits before each further one. Without this limit, a controller that creates the object
// again, because its cache still has the owner, would make a loop in which the time of a bubble
// never passes.
const (
	collectPeriod    = 10 * time.Millisecond
	collectedPerName = 10
	collectedAtOnce  = 1000
)

// pause waits if r, an object of the given owner, must not be deleted yet.
func (c *Collector) pause(r reference, owner string) {
	if time.Since(c.period) >= collectPeriod {
		c.period = time.Now()
		clear(c.collected)
	}
	ofOwner := reference{collection: owner}
	c.collected[r]++
	c.collected[ofOwner]++
	if c.collected[r] <= collectedPerName && c.collected[ofOwner] <= collectedAtOnce {
		return
	}
	select {
	case <-time.After(collectPeriod):
	case <-c.ctx.Done():
	}
}
