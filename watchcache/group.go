package watchcache

import (
	"context"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/revision"
)

// A Group is a set of caches with one feed, such as the tables of a database. Their versions come
// from one sequence. So a transaction that changes several caches becomes visible in all of them at
// once, and a union of the caches is a Source of its own.
//
// The owner feeds the caches by the methods of the Group; a cache of a Group refuses
// [Cache.Replace] and [Cache.Apply]. A Group is safe for concurrent use. The zero Group is ready to
// use.
type Group struct {
	revision revision.Revision

	mu     sync.Mutex // held by the methods that feed the caches
	caches []*Cache
	last   listwatch.Version // the newest version that was fed
	from   listwatch.Version // the version of the first state, or the end of a gap that was dropped
	gaps   []gap             // the gaps after from, in order
}

// A gap is a range of versions whose changes were skipped. The states at both ends are known.
type gap struct{ after, until listwatch.Version }

// maxGaps is the maximum number of gaps that a Group remembers.
const maxGaps = 64

// Cache returns a new cache of g for the collection that d describes. Its first state is set by
// Replace or, if g already has a state, by Add.
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
	g.from = v
	g.advance(v)
	return nil
}

// Add sets the first state of a cache that was created after Replace, at the version that g has
// reached. The objects are checked as by [Cache.Replace].
func (g *Group) Add(c *Cache, objects []*listwatch.Object) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	state, err := c.state(objects, g.last)
	if err != nil {
		return err
	}
	c.feed.Lock()
	defer c.feed.Unlock()
	return c.replace(state, g.last, nil)
}

// UnchangedSince reports whether o, the newest object of its key in a cache of g, already had the
// same content at version v. An object that has changed and changed back while g skipped changes
// counts as unchanged. If g does not know the state at v, because v is before the first state,
// between two states around a gap or after the newest version, UnchangedSince returns false.
func (g *Group) UnchangedSince(o *listwatch.Object, v listwatch.Version) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return o.Version <= v && g.from <= v && v <= g.last &&
		!slices.ContainsFunc(g.gaps, func(skipped gap) bool { return skipped.after < v && v < skipped.until })
}

// Apply adds the changes of one transaction, whose last version is v. The changes of each cache
// must be in order of version, and greater than the version that the caches have reached. A
// transaction may have several versions. It still becomes visible in one step, and a client that
// was cut off within it resumes at the next change. If several changes share a version below v, a
// client may have been cut off between them, so a watch that starts there is [listwatch.Expired].
// Failed caches are ignored.
//
// The errors are the same as for [Cache.Apply]. After an error no cache has changed, and the owner
// calls Skip.
func (g *Group) Apply(v listwatch.Version, changes map[*Cache][]Change) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.apply(v, v, changes)
}

// Skip is for an owner that has missed changes before v, and knows only the differences between the
// state at v and the state of the caches. The changes contain these differences. Their versions are
// ignored: readers see all of them at once, at version W+1, where W is the version that the caches
// had reached. The caches then continue at v, and open watches continue. A watch or list that
// starts at a version between W and v fails with [listwatch.Expired], because another replica may
// have shown objects there that these caches never had.
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
	differences := make(map[*Cache][]Change, len(changes))
	for c, all := range changes {
		all = slices.Clone(all)
		for i := range all {
			if o := all[i].Object; o != nil {
				all[i].Object = c.description.At(o, next)
			}
			all[i].Version = next
		}
		differences[c] = all
	}
	g.bar(g.last, v)
	if g.gaps = append(g.gaps, gap{g.last, v}); len(g.gaps) > maxGaps {
		g.from, g.gaps = g.gaps[0].until, slices.Delete(g.gaps, 0, 1)
	}
	return g.apply(next, v, differences)
}

// bar makes the versions between after and until unusable as the start of a watch or a list. g.mu
// must be held.
func (g *Group) bar(after, until listwatch.Version) {
	for _, c := range g.caches {
		if c.isReady() {
			c.log.Bar(after, until)
		}
	}
}

// sharedVersions returns the versions below last that several writes have.
func sharedVersions(writes map[*Cache][]write, last listwatch.Version) (shared []listwatch.Version) {
	n := 0
	for _, all := range writes {
		n += len(all)
	}
	if n < 2 {
		return nil
	}
	versions := make([]listwatch.Version, 0, n)
	for _, all := range writes {
		for _, w := range all {
			versions = append(versions, w.Version)
		}
	}
	slices.Sort(versions)
	for i := 1; i < n; i++ {
		if v := versions[i]; v == versions[i-1] && v != last && (len(shared) == 0 || v != shared[len(shared)-1]) {
			shared = append(shared, v)
		}
	}
	return shared
}

// apply adds changes with versions up to v, and then advances the caches to until. g.mu must be
// held.
func (g *Group) apply(v, until listwatch.Version, changes map[*Cache][]Change) error {
	switch {
	case g.last == 0:
		return invalid("a change was applied before the state: call Replace first")
	case v <= g.last:
		return outOfOrder(v, g.last)
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
	for _, shared := range sharedVersions(writes, v) {
		g.bar(shared-1, shared+1)
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

// advance makes everything up to v visible. g.mu must be held.
func (g *Group) advance(v listwatch.Version) {
	g.last = v
	g.revision.Advance(v)
}

// A union is a union that reads the newest state in the same way as its caches do, and fails with
// any of them.
type union struct {
	*history.Union
	caches []*Cache
}

func (u *union) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	_, q, err := u.caches[0].prepare(ctx, q)
	if err != nil {
		return listwatch.Page{}, err
	}
	page, err := u.Union.List(ctx, q)
	return unlessFailed(page, err, u.caches...)
}

func (u *union) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	_, q, err := u.caches[0].prepare(ctx, q)
	if err == nil {
		_, err = unlessFailed(q, nil, u.caches...)
	}
	if err != nil {
		return nil, err
	}
	return u.Union.Watch(ctx, q)
}
