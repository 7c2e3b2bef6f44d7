package settings

import (
	"context"
	"errors"
	"log"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// A reader reads the tables in a transaction, which sees one state of them.
type reader struct {
	pgx.Tx
	progress func() // called before each query, and for each row
}

// changes returns the first changes after a version, or all of them if limit is nil.
func (r reader) changes(ctx context.Context, after listwatch.Version, limit any) (all []watchcache.Change, err error) {
	r.progress()
	// ForEachRow returns the error of the query.
	rows, _ := r.Query(ctx, `SELECT version, at, namespace, name, before, after FROM setting_changes
		WHERE version > $1 ORDER BY version LIMIT $2`, after, limit)
	var c watchcache.Change
	var old, object []byte
	_, err = pgx.ForEachRow(rows, []any{&c.Version, &c.At, &c.Key.Namespace, &c.Key.Name, &old, &object}, func() error {
		r.progress()
		c.Old, c.Object = parse(old, c.Key, false), parse(object, c.Key, true)
		all = append(all, c)
		return nil
	})
	return all, err
}

// objects returns the state. It reports rows that are not objects only up to the version oldest,
// because changes has reported all others.
func (r reader) objects(ctx context.Context, oldest listwatch.Version) (all []*listwatch.Object, err error) {
	r.progress()
	// ForEachRow returns the error of the query.
	rows, _ := r.Query(ctx, `SELECT version, namespace, name, object FROM setting_objects`)
	var v listwatch.Version
	var key listwatch.Key
	var object []byte
	_, err = pgx.ForEachRow(rows, []any{&v, &key.Namespace, &key.Name, &object}, func() error {
		r.progress()
		if o := parse(object, key, v <= oldest); o != nil {
			all = append(all, o)
		}
		return nil
	})
	return all, err
}

// parse returns the object in data, or nil if data is empty. A row that is not an object, for
// example because its JSON is too deep, must not stop the feed: it counts as absent.
func parse(data []byte, key listwatch.Key, report bool) *listwatch.Object {
	if data == nil {
		return nil
	}
	o, err := listwatch.ParseObject(data)
	if err == nil && o.Version == 0 {
		o, err = nil, errors.New("it has no version, because it was inserted without the triggers")
	}
	if err != nil && report {
		log.Printf("settings: the row %s is no object and counts as absent: %v", key, err)
	}
	return o
}

// replace sets the newest state, with the changes since the oldest version.
func (s *Source) replace(ctx context.Context, r reader, b bounds) error {
	past, err := r.changes(ctx, b.oldest, nil)
	if err != nil {
		return err
	}
	objects, err := r.objects(ctx, b.oldest)
	if err != nil {
		return err
	}
	past = slices.DeleteFunc(past, func(c watchcache.Change) bool { return c.Old == nil && c.Object == nil })
	return s.Replace(objects, b.newest, append([]watchcache.Change{{Version: b.oldest}}, past...)...)
}
