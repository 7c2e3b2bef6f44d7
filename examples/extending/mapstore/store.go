// Package mapstore is a store in a Go map. It implements [store.Backend] as simply as possible: Get
// reads the map, and a [slicesource.Source] serves lists and watches.
package mapstore

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/examples/extending/slicesource"
	"github.com/listwatch/listwatch/store"
)

// DefaultHistoryBytes is the default limit of a store's history.
const DefaultHistoryBytes = 64 << 20

// A Backend keeps the objects of one collection in a map.
type Backend struct {
	*slicesource.Source
	maxHistoryBytes int64

	mu sync.Mutex
	// Guarded by mu.
	objects          map[listwatch.Key]*listwatch.Object
	newest           listwatch.Version
	middle           listwatch.Version // the next compaction drops the history up to here
	bytesAfterMiddle int64             // the size of the history after middle
}

var _ store.Backend = (*Backend)(nil)

// New returns an empty store and its backend. If historyBytes is zero, DefaultHistoryBytes is
// used.
func New(s store.CollectionSpec, historyBytes int64) (*store.Collection, *Backend) {
	if historyBytes == 0 {
		historyBytes = DefaultHistoryBytes
	}
	// The store is empty after a restart. The versions start at the current time, so that no
	// version is used again, and the new epoch tells clients that the state was replaced.
	start := listwatch.Version(time.Now().UnixMicro())
	source := slicesource.New(s.WithDefaults().Description(rand.Text()), start)
	b := &Backend{
		Source: source, maxHistoryBytes: historyBytes, objects: make(map[listwatch.Key]*listwatch.Object),
		newest: start,
	}
	return store.New(s, b), b
}

// Get implements [store.Backend].
func (b *Backend) Get(_ context.Context, key listwatch.Key) (*listwatch.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[key], nil
}

// Commit implements [store.Backend].
func (b *Backend) Commit(_ context.Context, c store.Change) (*listwatch.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := c.Check(b.objects[c.Key]); err != nil {
		return nil, err
	}
	b.newest++
	w := slicesource.Write{Version: b.newest, Old: c.Old}
	if c.New == nil {
		delete(b.objects, c.Key)
		b.add(w, c.Old)
		return c.Old.At(b.newest), nil
	}
	w.New = c.New.Seal(b.newest)
	b.objects[c.Key] = w.New
	b.add(w, w.New)
	return w.New, nil
}

// add adds a write to the history. If the history would exceed maxHistoryBytes, add drops the
// oldest writes, about half of the history. The caller must hold mu.
func (b *Backend) add(w slicesource.Write, o *listwatch.Object) {
	size := int64(len(o.Data))
	if b.bytesAfterMiddle+size > b.maxHistoryBytes/2 {
		b.Compact(b.middle)
		b.middle, b.bytesAfterMiddle = w.Version-1, 0
	}
	b.bytesAfterMiddle += size
	b.Append(w)
}
