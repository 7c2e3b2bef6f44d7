//go:build unix

package logical

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/postgres"
)

// A replica is a server that is restarted at times. Until the new server is open, the replica is
// the server that has ended, whose reads and writes fail.
type replica struct {
	*database
	options    postgres.Options
	tables     []postgres.Table
	restarting sync.Mutex // held during a restart

	mu          sync.Mutex
	db          *postgres.DB                 // guarded by mu; changes only during a restart
	collections map[string]*store.Collection // guarded by mu: by name
	restarts    int                          // guarded by mu
}

// replica returns a server that runs until the end of the test.
func (d *database) replica(o postgres.Options, tables []postgres.Table) *replica {
	d.Helper()
	r := &replica{database: d, options: o, tables: tables}
	if err := r.start(d.Context()); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() {
		r.restarting.Lock()
		_ = r.db.Close() // always nil
	})
	return r
}

func (r *replica) start(ctx context.Context) error {
	db, err := postgres.Open(ctx, r.url, r.options, r.tables...)
	if err != nil {
		return err
	}
	collections := map[string]*store.Collection{}
	for _, c := range chaosCollections {
		if collections[c.QualifiedName()], err = db.Collection(c); err != nil {
			_ = db.Close() // always nil
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.db, r.collections = db, collections
	r.restarts++
	return nil
}

// restart restarts the server in the background, unless that is being done.
func (r *replica) restart() {
	if !r.restarting.TryLock() {
		return
	}
	go func() {
		defer r.restarting.Unlock()
		_ = r.db.Close() // always nil
		for ctx := r.Context(); ctx.Err() == nil; wait(ctx, 50*time.Millisecond) {
			if r.start(ctx) == nil { // PostgreSQL may be away
				return
			}
		}
	}()
}

// source returns the Source of a table or a collection.
func (r *replica) source(name string) listwatch.Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.collections[name]; c != nil {
		return c
	}
	return r.db.Source(name)
}

// collection returns a collection of documents.
func (r *replica) collection(name string) *store.Collection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.collections[name]
}

func (r *replica) stats() postgres.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.db.Stats()
}
