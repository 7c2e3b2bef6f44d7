package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/listwatch/listwatch"
)

// SQLSTATEs (PostgreSQL documentation, "PostgreSQL Error Codes").
const (
	insufficientPrivilege = "42501"
	notNullViolation      = "23502"
	foreignKey            = "23503"
	uniqueViolation       = "23505"
	checkViolation        = "23514"
	exclusionViolation    = "23P01"
	generatedAlways       = "428C9"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	raisedException       = "P0001"
	tooManyConnections    = "53300"
	invalidPassword       = "28P01"
)

// isTemporary reports whether err is an error of PostgreSQL that says nothing about the statement,
// such as a canceled query, a lock timeout, or a shutdown.
func isTemporary(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && hasClass(e, "08", "40", "53", "55", "57")
}

// hasClass reports whether the SQLSTATE of e is in one of the classes, of two characters each.
func hasClass(e *pgconn.PgError, classes ...string) bool {
	return slices.ContainsFunc(classes, func(class string) bool { return strings.HasPrefix(e.Code, class) })
}

// hasCode reports whether err is an error of PostgreSQL with the given SQLSTATE.
func hasCode(err error, code string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == code
}

// causeDuplicate is Kubernetes' reason for a value that another object has (metav1.CauseType).
const causeDuplicate = "FieldValueDuplicate"

// refused returns the error of a write for clients: a [listwatch.Cause] if the object is to blame.
// It contains names of columns and constraints, but no values, and no text from PostgreSQL except
// as permitted by [Options.ShowExceptions]. The connection must be outside of a transaction. Other
// errors are returned unchanged.
func (w *rowWrite) refused(ctx context.Context, err error) error {
	s, c := w.shape, w.change
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	cause := listwatch.Cause{Reason: listwatch.CauseInvalid}
	switch {
	case e.Code == notNullViolation:
		cause = listwatch.Cause{
			Reason: listwatch.CauseRequired, Field: s.pathOf(e.ColumnName), Message: "Required value",
		}
	case e.Code == generatedAlways:
		cause.Message = "Invalid value: the database generates the value of a column that the object sets"
	case e.Code == uniqueViolation, e.Code == exclusionViolation:
		columns, err := w.constraintColumns(ctx, e)
		switch {
		case err != nil: // the connection was lost
			return err
		case c.Old == nil && s.isIdentity(columns):
			return errChanged
		}
		cause = listwatch.Cause{
			Reason: causeDuplicate, Field: s.pathsOf(columns),
			Message: fmt.Sprintf("Duplicate value: constraint %q allows it in one object only", e.ConstraintName),
		}
	case e.Code == foreignKey && c.New == nil:
		// The code is not Conflict, because it is of no use to try again.
		return &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusConflict, Reason: "Conflict", Err: err,
			Message: fmt.Sprintf("rows of another table still refer to the object (constraint %q)", e.ConstraintName),
		}
	case e.Code == foreignKey:
		columns, _ := w.constraintColumns(ctx, e) // without them, the cause has no field
		cause.Field = s.pathsOf(columns)
		cause.Message = fmt.Sprintf("Invalid value: constraint %q requires a row that does not exist", e.ConstraintName)
	case e.Code == checkViolation && e.ConstraintName == "":
		cause.Message = "Invalid value: the table cannot hold the row"
	case e.Code == checkViolation:
		columns, _ := w.constraintColumns(ctx, e) // without them, the cause has no field
		cause.Field = s.pathsOf(columns)
		if cause.Field == "" {
			cause.Field = w.faulty(e).path
		}
		cause.Message = fmt.Sprintf("Invalid value: violates constraint %q", e.ConstraintName)
	case hasClass(e, "22", "54"): // wrong or too large
		faulty := w.faulty(e)
		cause.Field, cause.Message = faulty.path, "Invalid value: "+w.demand(ctx, faulty)
	case e.Code == insufficientPrivilege:
		return &listwatch.Error{
			Code: listwatch.Forbidden, Message: "the database does not permit this server to make the write", Err: err,
		}
	case isTemporary(err) || hasClass(e, "0A", "25", "42", "58", "XX"):
		return err
	default: // a trigger may choose any other code
		cause.Reason, cause.Message = listwatch.CauseForbidden, "Forbidden: a trigger of the table refuses the write"
		if w.collection.db.options.ShowExceptions && e.Code == raisedException {
			cause.Message = "Forbidden: " + e.Message
		}
	}
	return cause
}

// constraintColumns returns the columns of the constraint or the unique index that e names. It
// returns none for the constraint of a domain, or of another table that a trigger has written.
func (w *rowWrite) constraintColumns(ctx context.Context, e *pgconn.PgError) (names []string, err error) {
	if e.TableName == "" {
		return nil, nil
	}
	rows, err := w.session.query(ctx, `WITH t AS (SELECT pg_catalog.to_regclass(%[1]s) AS oid)
		SELECT a.attname FROM t, pg_catalog.pg_attribute a WHERE a.attrelid = t.oid
			AND t.oid IN (SELECT %[4]d UNION SELECT relid FROM pg_catalog.pg_partition_tree(%[4]d)) AND (
			a.attnum = ANY ((SELECT conkey FROM pg_catalog.pg_constraint
				WHERE conrelid = t.oid AND conname = %[2]s)::int2[])
			OR a.attnum = ANY ((SELECT indkey FROM pg_catalog.pg_index WHERE indrelid = t.oid
				AND indexrelid = pg_catalog.to_regclass(%[3]s))::int2[])) ORDER BY a.attnum`,
		literalOf(identifier(e.SchemaName, e.TableName)), literalOf(e.ConstraintName),
		literalOf(identifier(e.SchemaName, e.ConstraintName)), w.shape.oid)
	for _, row := range rows {
		names = append(names, string(row[0]))
	}
	return names, err
}

// isIdentity reports whether the columns are those that identify a row.
func (s *shape) isIdentity(columns []string) bool {
	return len(columns) == len(s.identity) && !slices.ContainsFunc(s.identity, func(at int) bool {
		return !slices.Contains(columns, s.columns[at].name)
	})
}

// pathsOf returns the paths of the members that show columns.
func (s *shape) pathsOf(columns []string) string {
	var paths []string
	for _, name := range columns {
		if path := s.pathOf(name); path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return strings.Join(paths, ", ")
}

var parameterNumber = regexp.MustCompile(`\$([0-9]+)`)

// faulty returns the assignment whose value PostgreSQL could not read. PostgreSQL names the
// parameter in the context of the error. The first parameters of a statement are its assignments.
// If PostgreSQL could read all parameters, the assignment is known only if there is no other one.
// If it is unknown, its path is empty.
func (w *rowWrite) faulty(e *pgconn.PgError) assignment {
	all := w.assigned
	if number := parameterNumber.FindStringSubmatch(e.Where); number != nil {
		if n, err := strconv.Atoi(number[1]); err == nil && n >= 1 && n <= len(all) {
			return all[n-1]
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return assignment{}
}

// demand says which values the column of an assignment can hold.
func (w *rowWrite) demand(ctx context.Context, a assignment) string {
	const unknown = "the column cannot hold it"
	if a.path == "" {
		return unknown
	}
	row, err := w.session.row(ctx, `SELECT pg_catalog.format_type(atttypid, atttypmod), (SELECT pg_catalog.string_agg(
			pg_catalog.to_json(enumlabel::text)::text, ', ' ORDER BY enumsortorder) FROM pg_catalog.pg_enum
			WHERE enumtypid = atttypid)
		FROM pg_catalog.pg_attribute WHERE attrelid = %d AND attname = %s`,
		w.shape.oid, literalOf(w.shape.columns[a.at].name))
	switch {
	case err != nil:
		return unknown // the error of the write matters more
	case row[1] != "":
		return "must be one of " + row[1]
	}
	return unknown + "; its type is " + row[0]
}
