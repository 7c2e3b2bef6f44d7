package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// A rowWrite is a transaction that makes a change of one row.
type rowWrite struct {
	session    session
	collection *collection
	shape      *shape
	change     store.Change
	assigned   []assignment
}

// A written is a write that was committed.
type written struct {
	key    listwatch.Key
	object *listwatch.Object // at version 0; nil for a delete
	// locked is a position in the log between those of the previous change of the row and of this
	// one.
	locked lsn
}

// beginWrite begins the transaction. Its commit is flushed even if the database has
// synchronous_commit=off, because the log is sent only when it is flushed, and the writer waits for
// that.
const beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '3s'; " + flushCommit

// run executes the transaction. The result is nil if no value changes.
func (w *rowWrite) run(ctx context.Context) (done *written, err error) {
	if w.change.New != nil {
		if w.assigned, err = w.collection.assign(w.shape, w.change); err != nil {
			return nil, err
		}
	}
	if _, err := w.session.query(ctx, "%s", beginWrite); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotBegun, err)
	}
	if done, err = w.execute(ctx); err == nil && done != nil {
		_, err = w.session.query(ctx, "COMMIT")
	}
	if err == nil && done != nil {
		return done, nil
	}
	_, _ = w.session.query(ctx, "ROLLBACK") // if it fails, the pool closes the connection
	return nil, w.refused(ctx, err)
}

// execute changes the row if it has the content of the old object. The result is nil if the row is
// the same as before.
func (w *rowWrite) execute(ctx context.Context) (*written, error) {
	s, c := w.shape, w.change
	if c.Old != nil {
		if err := w.lock(ctx); err != nil {
			return nil, err
		}
	}
	if c.New != nil && c.Old != nil && len(w.assigned) == 0 {
		return nil, nil
	}
	shown := "true"
	if s.filter != "" {
		shown = "(" + s.filter + ")"
	}
	var p parameters
	rows, err := p.query(ctx, w.session, "%s RETURNING pg_catalog.pg_current_wal_insert_lsn(), %s, %s",
		w.statement(&p), shown, w.shape.columnList())
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, forbidden("", "the database ignores the write")
	}
	at, err := parseLSN(string(rows[0][0]))
	if err != nil {
		return nil, err
	}
	isShown, row := string(rows[0][1]) == "t", tupleOf(rows[0][2:])
	key := s.placeOf(row).Key
	o, err := w.collection.object(s, key, row, 0)
	switch {
	case c.New == nil:
	case err != nil:
		return nil, forbidden("", "the row could not be shown as an object")
	case !isShown:
		return nil, forbidden("", "the rows that are shown would not include this one")
	case c.Key.Name != "" && key != c.Key:
		return nil, invalid("metadata.name", fmt.Sprintf("the database writes this name as %q", key.Name))
	case c.Old != nil && sameContent(o, c.Old):
		return nil, nil
	}
	done := &written{key: key, locked: at}
	if c.New != nil {
		done.object = o
	}
	return done, nil
}

// lock locks the row of the old object. It fails if the row does not have the object's content.
func (w *rowWrite) lock(ctx context.Context) error {
	s, old := w.shape, w.change.Old
	var p parameters
	rows, err := p.query(ctx, w.session, "SELECT %s FROM %s WHERE %s FOR UPDATE",
		w.shape.columnList(), identifier(s.namespace, s.name), w.isRow(&p))
	switch {
	case err != nil:
		return err
	case len(rows) != 1:
		return errChanged
	}
	row := tupleOf(rows[0])
	current, err := w.collection.object(s, s.placeOf(row).Key, row, old.Version)
	if err != nil || current.Key != old.Key || !sameContent(current, old) {
		return errChanged
	}
	return nil
}

// errNotBegun is the error of a write that had no effect, because its connection was lost before.
var errNotBegun = errors.New("no transaction")

// errChanged is the error of a write whose precondition does not hold.
var errChanged = &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}

// isRow returns the condition for the row. The namespace need not be part of it.
func (w *rowWrite) isRow(p *parameters) string {
	s, key := w.shape, w.change.Key
	parts := s.parseName(key.Name)
	if parts == nil {
		return "FALSE"
	}
	conditions := make([]string, len(s.identity))
	for i, at := range s.identity {
		text := []byte(key.Namespace)
		if in := slices.Index(s.nameFrom, at); in >= 0 {
			text = parts[in]
		} else if at == s.collectionAt {
			text = []byte(w.collection.name)
		}
		conditions[i] = identifier(s.columns[at].name) + " = " + p.add(&s.columns[at], text)
	}
	return strings.Join(conditions, " AND ")
}

// statement returns the statement that makes the change, without its RETURNING clause.
func (w *rowWrite) statement(p *parameters) string {
	s := w.shape
	table := identifier(s.namespace, s.name)
	if w.change.New == nil {
		return fmt.Sprintf("DELETE FROM %s WHERE %s", table, w.isRow(p))
	}
	var names, values, both []string
	for _, a := range w.assigned {
		name, value := identifier(s.columns[a.at].name), p.add(&s.columns[a.at], a.text)
		names, values, both = append(names, name), append(values, value), append(both, name+" = "+value)
	}
	switch {
	case w.change.Old != nil:
		return fmt.Sprintf("UPDATE %s SET %s WHERE %s", table, strings.Join(both, ", "), w.isRow(p))
	case len(names) == 0:
		return fmt.Sprintf("INSERT INTO %s DEFAULT VALUES", table)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(names, ", "), strings.Join(values, ", "))
}

// parameters are the parameters of an SQL statement.
type parameters struct {
	values [][]byte
	types  []uint32
}

// add adds a parameter for a column, and returns its number in SQL. If text is nil, its value is
// NULL.
func (p *parameters) add(c *column, text []byte) string {
	p.values, p.types = append(p.values, text), append(p.types, c.oid)
	return "$" + strconv.Itoa(len(p.values))
}

// query runs a statement and returns its rows.
func (p *parameters) query(ctx context.Context, s session, format string, args ...any) ([][][]byte, error) {
	result := s.ExecParams(ctx, fmt.Sprintf(format, args...), p.values, p.types, nil, nil).Read()
	return result.Rows, result.Err
}
