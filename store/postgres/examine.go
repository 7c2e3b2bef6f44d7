package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// A Severity is the consequence of a [Finding].
type Severity int

// The severities.
const (
	Fine    Severity = iota
	Note             // worth knowing, but Open does not fail
	Problem          // Open fails
)

// A Finding is the result of one check of a database. A Finding that is a Problem is an error of
// [Open].
type Finding struct {
	// Check names the check, such as "wal_level" or "table orders".
	Check    string
	Severity Severity
	// Text describes what was found. It contains names of roles and tables, and may contain text of
	// PostgreSQL, so show it only to operators.
	Text string
	// Remedy is the SQL statement that solves the problem. If empty, no single statement does.
	Remedy string

	err error // of PostgreSQL, or nil
}

// Error implements error.
func (f Finding) Error() string {
	if f.Remedy == "" {
		return f.Text
	}
	return f.Text + ": " + f.Remedy
}

// Unwrap returns the error of PostgreSQL, if there is one.
func (f Finding) Unwrap() error { return f.err }

// Examine makes the checks of [Open], and a few more about the configuration of the server, without
// changing anything in the database. Open fails if a finding is a [Problem]. The error is that of a
// connection.
func Examine(ctx context.Context, dsn string, o Options, tables ...Table) ([]Finding, error) {
	e, err := newExamination(dsn, o, tables)
	if err != nil {
		return nil, err
	}
	if err := e.connect(ctx); err != nil {
		if f, ok := errors.AsType[Finding](err); ok {
			return []Finding{f}, nil
		}
		return nil, err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }() // it was only read
	err = e.examine(ctx)
	if err == nil {
		err = e.checkOperation(ctx)
	}
	for i := 0; i < len(e.served) && err == nil; i++ {
		err = e.checkRows(ctx, e.served[i])
	}
	return e.findings, err
}

// An examination checks a database, and collects what Open needs to know about it.
type examination struct {
	session
	config   *pgconn.Config
	options  Options
	tables   []Table // with the table of documents
	findings []Finding
	served   []servedTable
	logged   []*facts // about the tables that can be published
	missing  []string // the names in SQL of the tables that the publication lacks
	owned    []string // the OIDs of those of them that exist
	changes  []string // the statements that create and publish what is missing
}

// A servedTable is a table that can be served.
type servedTable struct {
	*Table
	shape *shape
}

func newExamination(dsn string, o Options, tables []Table) (*examination, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		o.Documents = cmp.Or(o.Documents, DefaultDocuments)
	}
	e := &examination{config: config, options: o.withDefaults(), tables: slices.Clone(tables)}
	if o.Documents != "" {
		e.tables = append(e.tables, documentsTable(o.Documents))
	}
	return e, nil
}

// prepare makes the checks of Open, and then creates and publishes what is missing. The error
// contains the problems of all tables, so that an administrator can solve them together.
func (e *examination) prepare(ctx context.Context) error {
	if err := e.examine(ctx); err != nil {
		return err
	}
	if err := e.problems(); err != nil {
		return err
	}
	for _, statement := range e.changes {
		if _, err := e.query(ctx, "%s", statement); err != nil {
			return fmt.Errorf("%w; the owner of the tables can run this: %s", err, statement)
		}
	}
	return nil
}

// add adds a finding. Unless ok is true, the state that text describes has a severity, demand says
// what is needed, and remedy is a statement that leads to it.
func (e *examination) add(check string, ok bool, otherwise Severity, text, demand, remedy string) {
	f := Finding{Check: check, Text: text}
	if !ok {
		f = Finding{check, otherwise, text + ": " + demand, remedy, nil}
	}
	e.findings = append(e.findings, f)
}

// problems returns the findings that are problems as one error, or nil if there are none.
func (e *examination) problems() error {
	var all []error
	for _, f := range e.findings {
		if f.Severity == Problem {
			all = append(all, f)
		}
	}
	return errors.Join(all...)
}

// connect opens a session that can follow the log. If PostgreSQL refuses only that, the reason is a
// finding, and the session can make the other checks.
func (e *examination) connect(ctx context.Context) (err error) {
	config := e.config
	e.session, err = connect(ctx, config, true)
	refused, role := err, identifier(config.User)
	switch {
	case hasCode(err, invalidPassword):
		return refusal(config, err, "unless the password is wrong, a superuser",
			"CREATE ROLE "+role+" LOGIN REPLICATION PASSWORD '…'")
	case err == nil:
		e.add("connection", true, Fine, "role "+role+" may follow the log", "", "")
		return nil
	case !hasCode(err, insufficientPrivilege) && !hasCode(err, tooManyConnections):
		return err
	}
	if e.session, err = connect(ctx, config, false); hasCode(err, insufficientPrivilege) {
		return refusal(config, err, "the owner of the database",
			"GRANT CONNECT ON DATABASE "+identifier(config.Database)+" TO "+role)
	}
	who, remedy := "a superuser", "ALTER ROLE "+role+" REPLICATION"
	if hasCode(refused, tooManyConnections) {
		who, remedy = "a superuser, who then restarts PostgreSQL,", "ALTER SYSTEM SET max_wal_senders = 20"
	}
	e.findings = append(e.findings, refusal(config, refused, who, remedy))
	return err
}

// refusal returns the finding that PostgreSQL refuses a connection. The text does not have the
// attempts to connect in other ways, such as over TLS.
func refusal(config *pgconn.Config, err error, who, remedy string) Finding {
	reason := err
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		reason = e
	}
	text := fmt.Sprintf("PostgreSQL at %s, port %d: %v; %s can run this", config.Host, config.Port, reason, who)
	return Finding{"connection", Problem, text, remedy, err}
}

// examine makes the checks of Open.
func (e *examination) examine(ctx context.Context) error {
	standby, err := e.checkServer(ctx)
	if err != nil || standby {
		return err // on a standby, the catalog has no position of the log
	}
	for i := range e.tables {
		if err := e.checkTable(ctx, &e.tables[i]); err != nil {
			return err
		}
	}
	return e.checkPublication(ctx)
}

// checkServer checks the server, and reports whether it is a standby.
func (e *examination) checkServer(ctx context.Context) (standby bool, err error) {
	row, err := e.row(ctx, `SELECT pg_catalog.current_setting('server_version'),
		pg_catalog.current_setting('server_version_num')::int >= 150000, pg_catalog.pg_is_in_recovery(),
		pg_catalog.current_setting('wal_level'), pg_catalog.current_setting('server_encoding'),
		(SELECT count(*) FROM pg_catalog.pg_replication_slots), pg_catalog.current_setting('max_replication_slots'),
		(SELECT count(*) FROM pg_catalog.pg_replication_slots) < pg_catalog.current_setting('max_replication_slots')::int,
		(SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE slot_name LIKE 'listwatch\_%%')`)
	if err != nil {
		return false, err
	}
	standby = row[2] == "t"
	server := "the server is a primary"
	if standby {
		server = "the server is a standby"
	}
	e.add("version", row[1] == "t", Problem, "PostgreSQL "+row[0], "version 15 or later is needed", "")
	e.add("server", !standby, Problem, server, "connect to the primary", "")
	e.add("wal_level", row[3] == "logical", Problem, "wal_level is "+row[3],
		"set wal_level=logical and restart PostgreSQL", "ALTER SYSTEM SET wal_level = logical")
	e.add("encoding", row[4] == "UTF8", Problem, "the encoding of the database is "+row[4],
		"UTF8 is needed, because JSON is UTF-8", "")
	e.add("slots", row[7] == "t", Problem,
		fmt.Sprintf("%s of %s replication slots are in use, %s of them by listwatch", row[5], row[6], row[8]),
		"each server needs one; set a greater number and restart PostgreSQL", "ALTER SYSTEM SET max_replication_slots = 20")
	return standby, nil
}

// checkTable adds the findings about a table, and completes its Kind and APIVersion. It returns an
// error if the connection fails.
func (e *examination) checkTable(ctx context.Context, t *Table) error {
	if t.document != "" {
		row, err := e.row(ctx, "SELECT pg_catalog.to_regclass(%s) IS NULL", literalOf(t.Name))
		if err != nil || row[0] == "t" {
			return cmp.Or(err, e.checkCreation(ctx, t.Name))
		}
	}
	check := "table " + t.Name
	facts, err := e.facts(ctx, t.Name)
	var shape *shape
	if err == nil {
		t.APIVersion, t.Kind = cmp.Or(t.APIVersion, "v1"), cmp.Or(t.Kind, facts.name)
		shape, err = e.shapeToServe(ctx, t, facts)
	}
	if e.IsClosed() || ctx.Err() != nil {
		return err
	}
	if err == nil {
		e.served = append(e.served, servedTable{t, shape})
		e.addShape(check, shape)
	} else {
		f, ok := errors.AsType[Finding](err)
		if !ok {
			f = Finding{Text: err.Error()}
		}
		f.Check, f.Severity = check, Problem
		e.findings = append(e.findings, f)
	}
	if facts != nil && (e.options.Writable || t.document != "") {
		return e.checkWrites(ctx, t.Name, facts)
	}
	return nil
}

// checkCreation adds the finding that the table of documents is missing.
func (e *examination) checkCreation(ctx context.Context, name string) error {
	row, err := e.row(ctx, `SELECT pg_catalog.has_schema_privilege(CASE cardinality(path)
		WHEN 1 THEN pg_catalog.current_schema() ELSE path[1] END, 'CREATE') FROM pg_catalog.parse_ident(%s) path`,
		literalOf(name))
	if err != nil {
		return err
	}
	statement := "CREATE TABLE " + name + " " + documentsColumns
	severity, who := Problem, "the owner of the schema can run this, and GRANT ALL ON the table to the role"
	if row[0] == "t" {
		severity, who = Note, "the start of a server runs this"
		e.changes, e.missing = append(e.changes, statement), append(e.missing, name)
	}
	e.add("table "+name, false, severity, "table "+name+" does not exist", who, statement)
	return nil
}

// addShape adds a finding about a table that can be served.
func (e *examination) addShape(check string, s *shape) {
	text := fmt.Sprintf("has a primary key and %d columns", len(s.columns))
	if s.filter != "" {
		text += "; the publication has the rows with " + s.filter
	}
	e.add(check, len(s.generated) == 0, Note, text,
		"the log does not have these generated columns, so they are not shown: "+strings.Join(s.generated, ", "), "")
}

// shapeToServe returns the shape of a table, as it is published if it is.
func (e *examination) shapeToServe(ctx context.Context, t *Table, facts *facts) (*shape, error) {
	if err := facts.checkLog(); err != nil {
		return nil, err
	}
	rows, err := e.query(ctx, "SELECT FROM %s", partOf(e.options.Publication, facts))
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(e.logged, facts.isSame) {
		return nil, fmt.Errorf("table %s is named more than once", identifier(facts.namespace, facts.name))
	}
	e.logged = append(e.logged, facts)
	if len(rows) == 0 {
		e.missing = append(e.missing, identifier(facts.namespace, facts.name))
		e.owned = append(e.owned, fmt.Sprint(facts.oid))
		return e.shapeOf(ctx, "", t, facts)
	}
	return e.shapeOf(ctx, e.options.Publication, t, facts)
}

// checkWrites checks the rights of the role to write a table.
func (e *examination) checkWrites(ctx context.Context, name string, f *facts) error {
	row, err := e.row(ctx, `SELECT pg_catalog.has_any_column_privilege(%d::oid, 'INSERT') AND pg_catalog.has_any_column_privilege(%[1]d::oid, 'UPDATE')
			AND pg_catalog.has_table_privilege(%[1]d::oid, 'DELETE')`, f.oid)
	if err != nil {
		return err
	}
	may, table := row[0] == "t", identifier(f.namespace, f.name)
	text := "role " + f.role + " may write the table"
	if !may {
		text = "role " + f.role + " may not write table " + table
	}
	e.add("writes to "+name, may, Problem, text, "the owner of the table can run this",
		"GRANT INSERT, UPDATE, DELETE ON "+table+" TO "+f.role)
	return nil
}

// checkRows adds a finding about the rows of a table that are not objects. A document may have any
// kind.
func (e *examination) checkRows(ctx context.Context, t servedTable) error {
	all := &collection{table: &table{config: *t.Table}}
	n, hidden, first := 0, 0, ""
	err := e.eachRow(ctx, t.shape, func(row tuple) error {
		n++
		p := t.shape.placeOf(row)
		if _, err := all.object(t.shape, p.Key, row, 1); err != nil {
			if hidden++; hidden == 1 {
				first = fmt.Sprintf("%s: %v", p, err)
			}
		}
		return nil
	})
	if err != nil && !e.IsClosed() {
		return nil // another finding has the reason, such as missing rights
	}
	e.add("rows of "+t.Name, hidden == 0, Note, fmt.Sprintf("%d of %d rows are not objects", hidden, n),
		"clients do not see them; the first is "+first, "")
	return err
}

// checkPublication checks that the publication has the tables, or that the role may add them.
func (e *examination) checkPublication(ctx context.Context) error {
	if len(e.logged)+len(e.missing) == 0 {
		return nil
	}
	rows, err := e.query(ctx, `SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot,
		pg_catalog.pg_has_role(pubowner, 'USAGE') FROM pg_catalog.pg_publication WHERE pubname = %s`,
		literalOf(e.options.Publication))
	if err != nil {
		return err
	}
	publication := identifier(e.options.Publication)
	mayChange := "pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')"
	before, after := "CREATE PUBLICATION "+publication+" FOR TABLE ", " WITH (publish_via_partition_root = true)"
	if len(rows) > 0 {
		const byOwner = "the owner of the publication can run this"
		set := "ALTER PUBLICATION " + publication + " SET "
		row := texts(rows[0])
		if row[0] != "t" {
			e.add("publication", false, Problem, "publication "+publication+" omits some changes", byOwner,
				set+"(publish = 'insert, update, delete, truncate')")
			return nil
		}
		if row[1] != "t" && slices.ContainsFunc(e.logged, func(f *facts) bool { return f.kind == partitioned }) {
			e.add("publication", false, Problem, "publication "+publication+" shows partitions as tables", byOwner,
				set+"(publish_via_partition_root = true)")
			return nil
		}
		mayChange = fmt.Sprint(row[2] == "t")
		before, after = "ALTER PUBLICATION "+publication+" ADD TABLE ", ""
	}
	if len(e.missing) == 0 {
		e.add("publication", true, Fine, "publication "+publication+" has the tables", "", "")
		return nil
	}
	return e.checkMissing(ctx, publication, mayChange, before, after)
}

// checkMissing checks that the role may add the missing tables to the publication. mayChange is an
// SQL expression for its right to change the publication, and before and after are the parts of the
// statement that enclose the tables.
func (e *examination) checkMissing(ctx context.Context, publication, mayChange, before, after string) error {
	row, err := e.row(ctx, `SELECT %s AND (SELECT coalesce(bool_and(pg_catalog.pg_has_role(relowner, 'USAGE')), true)
		FROM pg_catalog.pg_class WHERE oid = ANY ('{%s}'::oid[]))`, mayChange, strings.Join(e.owned, ","))
	if err != nil {
		return err
	}
	tables := strings.Join(e.missing, ", ")
	severity, who := Problem, "the owner of the tables can run this"
	statement := before + tables + after
	if row[0] == "t" {
		severity, who = Note, "the start of a server runs this"
		e.changes = append(e.changes, statement)
	}
	e.add("publication", false, severity, "publication "+publication+" lacks "+tables, who, statement)
	return nil
}

// oldestTransaction is the query for the transaction whose end the creation of a slot waits for.
const oldestTransaction = `SELECT coalesce(pid, 0), coalesce(application_name, 'a prepared transaction'),
	extract(epoch FROM clock_timestamp() - began)::int
	FROM (SELECT pid, application_name, xact_start AS began FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL
		UNION ALL SELECT NULL, NULL, prepared FROM pg_catalog.pg_prepared_xacts) t ORDER BY began LIMIT 1`

// checkOperation adds the findings that do not prevent a start.
func (e *examination) checkOperation(ctx context.Context) error {
	row, err := e.row(ctx, `SELECT pg_catalog.current_setting('wal_sender_timeout'),
		pg_catalog.current_setting('max_slot_wal_keep_size'), pg_catalog.quote_ident(current_user), oid::regprocedure,
		pg_catalog.has_function_privilege(oid, 'EXECUTE') FROM pg_catalog.pg_proc WHERE oid = (SELECT max(oid)
			FROM pg_catalog.pg_proc WHERE proname = 'pg_logical_emit_message' AND proargtypes[2] = 'text'::regtype)`)
	if err != nil {
		return err
	}
	e.add("timeout", row[0] != "0", Note, "wal_sender_timeout is "+row[0],
		"a server that hangs would retain log for ever", "ALTER SYSTEM SET wal_sender_timeout = '60s'")
	e.add("retention", row[1] != "-1", Note, "max_slot_wal_keep_size is "+row[1],
		"a server that lags can fill the disk with log", "ALTER SYSTEM SET max_slot_wal_keep_size = '10GB'")
	may := map[string]string{"t": " may run ", "f": " may not run "}[row[4]]
	e.add("reads", row[4] == "t", Note, "role "+row[2]+may+"pg_logical_emit_message",
		"reads of the newest state may wait for seconds",
		"GRANT EXECUTE ON FUNCTION "+row[3]+" TO "+row[2])
	oldest, err := e.query(ctx, "%s", oldestTransaction)
	if err != nil {
		return err
	}
	text := "no transaction delays a start"
	if len(oldest) > 0 {
		old := texts(oldest[0])
		text = fmt.Sprintf("a transaction of %s (pid %s) is open for %s seconds", old[1], old[0], old[2])
	}
	e.add("transactions", len(oldest) == 0, Note, text, "a start waits for its end", "")
	return nil
}
