package settings

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

var _ store.Backend = (*Source)(nil)

// Collection returns the table as a collection that can also be written. It refuses members for
// which the table has no column.
func (s *Source) Collection() *store.Collection {
	d := s.Describe()
	return store.New(store.CollectionSpec{
		APIVersion: d.APIVersion, Kind: d.Kind, Namespaced: true, Fields: d.Fields, Admit: admit,
	}, s)
}

// The members of objects that have a column, and the members that the collection or the database
// sets.
var (
	members         = []string{"apiVersion", "kind", "metadata", "spec"}
	metadataMembers = []string{
		"name", "namespace", "labels", "uid", "resourceVersion", "creationTimestamp", "generation",
	}
)

// admit refuses an object with other members: they would be lost without an error.
func admit(_ context.Context, _ *listwatch.Object, data []byte) ([]byte, error) {
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(object["metadata"], &metadata); err != nil {
		return nil, err
	}
	refused := append(unknown("", object, members), unknown("metadata.", metadata, metadataMembers)...)
	if object["spec"] == nil {
		refused = append(refused, listwatch.Cause{
			Reason: listwatch.CauseRequired, Field: "spec", Message: "the column must have a value",
		})
	}
	return data, errors.Join(refused...)
}

// unknown returns an error for each member of object that is not in known.
func unknown(path string, object map[string]json.RawMessage, known []string) (refused []error) {
	for name := range object {
		if !slices.Contains(known, name) {
			refused = append(refused, listwatch.Cause{
				Reason: listwatch.CauseForbidden, Field: path + name,
				Message: "the table has no column for this member",
			})
		}
	}
	slices.SortFunc(refused, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return refused
}

// Commit implements [store.Backend]: it writes one row. Other programs may write the table with SQL
// at the same time.
func (s *Source) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	var v listwatch.Version
	var after []byte
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := writeRow(ctx, tx, c); err != nil {
			return err
		}
		// The trigger runs now, and not at the commit, so that the version is known. From here on,
		// all other commits that change the table wait, so the commit must come at once.
		if _, err := tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
			return err
		}
		newest := tx.QueryRow(ctx, `SELECT version, after FROM setting_changes ORDER BY version DESC LIMIT 1`)
		return newest.Scan(&v, &after)
	})
	if err != nil {
		return nil, writeError(ctx, err)
	}
	_ = s.Wait(ctx, v) // if the cache is late, the write has happened nevertheless
	if c.New == nil {
		return c.Old.At(v), nil
	}
	return listwatch.ParseObject(after) // with the uid that the database has assigned
}

// writeRow writes a row if it still has the version of c.Old.
func writeRow(ctx context.Context, tx pgx.Tx, c store.Change) error {
	namespace, name := c.Key.Namespace, c.Key.Name
	// The row is locked first: after that, no other transaction changes its version.
	_, err := tx.Exec(ctx, `SELECT FROM settings WHERE (namespace, name) = ($1, $2) FOR UPDATE`, namespace, name)
	if err != nil {
		return err
	}
	var current *listwatch.Object
	var v listwatch.Version
	err = tx.QueryRow(ctx, `SELECT version FROM setting_versions WHERE (namespace, name) = ($1, $2)`,
		namespace, name).Scan(&v)
	switch {
	case err == nil:
		current = &listwatch.Object{Key: c.Key, Version: v}
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	if err := c.Check(current); err != nil {
		return err
	}
	if c.New == nil {
		_, err := tx.Exec(ctx, `DELETE FROM settings WHERE (namespace, name) = ($1, $2)`, namespace, name)
		return err
	}
	var object struct{ Spec json.RawMessage }
	if err := json.Unmarshal(c.New.Seal(0).Data, &object); err != nil {
		return err
	}
	labels := c.New.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	statement := `UPDATE settings SET labels = $3, spec = $4 WHERE (namespace, name) = ($1, $2)`
	if c.Old == nil {
		statement = `INSERT INTO settings (namespace, name, labels, spec) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
	}
	tag, err := tx.Exec(ctx, statement, namespace, name, labels, string(object.Spec))
	if err == nil && tag.RowsAffected() == 0 {
		return &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
	}
	return err
}

// writeError converts an error of a write. The text of PostgreSQL is only for the log of the
// server, because it may contain values of other columns.
func writeError(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*listwatch.Error](err); ok || ctx.Err() != nil {
		return err
	}
	// 22 and 23 are the classes of wrong values and of violated constraints.
	e, ok := errors.AsType[*pgconn.PgError](err)
	if ok && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "23")) {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "the database refused the row", Err: err}
	}
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the database did not acknowledge the write", Err: err,
	}
}
