package informer

import "github.com/tidwall/btree"

// Where a node of a tree is split, the halves share one array at first. What either half replaces stays in it, out of sight, for as long as
// the other half does not grow: half of the objects could be held twice. So when a tree has grown by an eighth it is copied node by node,
// which leaves nothing behind and costs an object nine moves of a pointer in all.

// grew counts new entries of the trees, and tidies them when there are many. write is held, mu is not.
func (x *Indexer[T]) countGrowth(entries int) {
	x.grown += entries
	if x.grown >= 64 && x.grown >= x.Len()/8 {
		x.compactTrees()
	}
}

// tidy leaves nothing behind of what was replaced so far. It is for the end of a state that may stay as it is for long.
func (x *Indexer[T]) compact() {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	x.compactTrees()
}

// tidyTrees is called with write held.
func (x *Indexer[T]) compactTrees() {
	x.grown = 0
	x.mu.Lock()
	x.init()
	c := x.contents.copy()
	x.mu.Unlock()
	// Readers go on with the trees as they are: nobody else can write to them now.
	c.items = compacted(c.items)
	for i := range c.indexes {
		c.indexes[i].tree = compacted(c.indexes[i].tree)
		c.indexes[i].values = x.contents.indexes[i].values
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.contents = c
}

// tidied returns a copy of t, of which every node has an array of its own. Nobody may write to t meanwhile.
func compacted[E any](t *btree.BTreeG[E]) *btree.BTreeG[E] {
	c := t.Copy()
	c.ScanMut(func(E) bool { return true })
	return c
}
