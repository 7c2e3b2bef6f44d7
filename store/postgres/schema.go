package postgres

import (
	"context"
	"maps"
	"slices"
	"time"
)

// A schemaCheck looks every few seconds for changes of the tables that the log does not report
// before the next change of a row, or not at all.
type schemaCheck struct {
	results chan definitions
	latest  definitions // definitions that were not compared yet
	stop    context.CancelFunc
}

// newSchemaCheck starts a check of the tables of f. A goroutine queries the catalog, so that the
// goroutine that follows the log does not wait.
func (f *follower) newSchemaCheck(ctx context.Context) *schemaCheck {
	ctx, stop := context.WithCancel(ctx)
	c := &schemaCheck{results: make(chan definitions, 1), stop: stop}
	if f.options.SchemaInterval < 0 {
		return c
	}
	oids := slices.Collect(maps.Keys(f.relations))
	go func() {
		ticker := time.NewTicker(f.options.SchemaInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			found, err := f.currentDefinitions(ctx, oids...)
			if err != nil {
				continue // the stream notices a lost connection
			}
			if f.noteWritten(found.at, found.retained) {
				f.flush(ctx)
			}
			select {
			case c.results <- found:
			default: // the stream lags, and has not compared the previous definitions yet
			}
		}
	}()
	return c
}

// currentDefinitions reads the fingerprints of tables over another connection.
func (f *follower) currentDefinitions(ctx context.Context, oids ...uint32) (d definitions, err error) {
	err = f.reads.with(ctx, func(s session) (err error) {
		d, err = s.definitions(ctx, []string{f.slot, f.options.Anchor}, f.options.Publication, oids...)
		return err
	})
	return d, err
}

// poll returns an error if a table has changed. It compares fingerprints only after the stream has
// passed their position. By then, the stream has reported each TRUNCATE, and a TRUNCATE also
// changes the files of a table.
func (c *schemaCheck) poll(f *follower) error {
	if c.latest.tables == nil {
		select {
		case c.latest = <-c.results:
		default:
			return nil
		}
	}
	if f.confirmed < c.latest.at {
		return nil
	}
	found := c.latest.tables
	c.latest = definitions{}
	f.feeding.Lock()
	defer f.feeding.Unlock()
	for _, t := range f.tables {
		if t.failed {
			continue
		}
		known, now := t.shape.fingerprint, found[t.shape.oid]
		switch {
		case now == known:
			continue
		case now.definition != known.definition || !t.truncated:
			return &tableError{t, "its definition has changed"}
		}
		shape := *t.shape
		shape.fingerprint = now
		t.shape, t.truncated = &shape, false
	}
	return nil
}
