package watchcache

import (
	"context"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// A Group is a set of caches with one feed, such as the tables of a database. Their versions come
// from one sequence, so that a transaction that changes several of them becomes visible in all at
// once, and a union of them is a Source of its own.
//
// The owner feeds the caches by the methods of the Group; a cache of a Group refuses
// [Cache.Replace] and [Cache.Apply]. A Group is safe for concurrent use. The zero Group is ready to
// use.
type Group struct {
	revision history.Revision

	mu     sync.Mutex // held by the methods that feed the caches
	caches []*Cache
	last   listwatch.Version // the newest version that was fed
}

// Cache returns a new cache of g for the collection that d describes. It must be called before
// Replace.
func (g *Group) Cache(d listwatch.Description, o Options) *Cache {
	c := New(d, o)
	c.group, c.revision = g, &g.revision
	g.mu.Lock()
	g.caches = append(g.caches, c)
	g.mu.Unlock()
	return c
}

// Version returns the version that the caches have reached. It is zero before the first state.
func (g *Group) Version() listwatch.Version { return g.revision.Version() }

// Wait returns nil when the caches have reached v. After 3 seconds it returns an error of code
// [listwatch.NotYet]. If ctx ends first, it returns the error of ctx.
func (g *Group) Wait(ctx context.Context, v listwatch.Version) error { return g.revision.Wait(ctx, v) }

// Replace sets the first state of all caches at version v. A cache without objects is empty. The
// objects are checked as by [Cache.Replace].
func (g *Group) Replace(v listwatch.Version, objects map[*Cache][]*listwatch.Object) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last != 0 {
		return invalid("the caches of the group already have a state: use Skip after a gap")
	}
	states := make([][]*listwatch.Object, len(g.caches))
	for i, c := range g.caches {
		state, err := c.state(objects[c], v)
		if err != nil {
			return err
		}
		states[i] = state
	}
	for i, c := range g.caches {
		c.feed.Lock()
		err := c.replace(states[i], v, nil)
		c.feed.Unlock()
		if err != nil {
			return err
		}
	}
	g.advance(v)
	return nil
}

// Apply adds the changes of one transaction, whose last version is v. The changes of each cache
// must be in order of version, and all of them greater than the version that the caches have
// reached. Versions may increase within a transaction: it still becomes visible in one step, and a
// client that was cut inside it resumes at the next change. Failed caches are ignored.
//
// Errors are those of [Cache.Apply]. After an error no cache has changed, and the owner calls Skip.
func (g *Group) Apply(v listwatch.Version, changes map[*Cache][]Change) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.apply(v, v, changes)
}

// Skip tells that the owner has missed what happened before v, and knows only how the state at v
// differs from that of the caches. The version of the changes is ignored: readers see them at the
// next version after the one that the caches had reached, W, all at once. The caches then continue
// at v. Open watches continue. No watch or list can start at a version between W and v, which fails
// with [listwatch.Expired]: another replica may have shown objects there that these caches never
// had.
func (g *Group) Skip(v listwatch.Version, changes map[*Cache][]Change) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case v == g.last && len(changes) == 0:
		return nil
	case v <= g.last:
		return outOfOrder(v, g.last)
	}
	next := g.last + 1
	for c, all := range changes {
		all = slices.Clone(all)
		for i := range all {
			if o := all[i].Object; o != nil {
				all[i].Object = o.At(next)
			}
			all[i].Version = next
		}
		changes[c] = all
	}
	for _, c := range g.caches {
		if c.isReady() {
			c.log.Bar(g.last, v)
		}
	}
	return g.apply(next, v, changes)
}

// apply adds changes with versions up to v, and then advances the caches to until. g.mu must be
// held.
func (g *Group) apply(v, until listwatch.Version, changes map[*Cache][]Change) error {
	if g.last == 0 {
		return invalid("a change was applied before the state: call Replace first")
	}
	writes := make(map[*Cache][]write, len(changes))
	for c, all := range changes {
		if c.failure() != nil || len(all) == 0 {
			continue
		}
		checked, err := check(all, g.last, c.write)
		if err != nil {
			return err
		}
		if newest := checked[len(checked)-1].Version; newest > v {
			return invalid("a change has version %d, which is above the version of its transaction, %d", newest, v)
		}
		writes[c] = checked
	}
	for c, all := range writes {
		c.append(until, all)
	}
	g.advance(until)
	return nil
}

// Advance records that the owner has applied all changes up to v; see [Cache.Advance]. It has no
// effect before the first state.
func (g *Group) Advance(v listwatch.Version) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last != 0 && v > g.last {
		g.advance(v)
	}
}

// advance makes what was fed up to v visible. g.mu must be held.
func (g *Group) advance(v listwatch.Version) {
	g.last = v
	for _, c := range g.caches {
		c.feed.Lock()
		c.last = v
		c.feed.Unlock()
	}
	g.revision.Advance(v)
}

// A union is a union whose reads of the newest state ask as those of its caches do.
type union struct {
	*history.Union
	cache *Cache
}

func (u *union) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	_, q, err := u.cache.prepare(ctx, q)
	if err != nil {
		return listwatch.Page{}, err
	}
	return u.Union.List(ctx, q)
}

func (u *union) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	_, q, err := u.cache.prepare(ctx, q)
	if err != nil {
		return nil, err
	}
	return u.Union.Watch(ctx, q)
}
