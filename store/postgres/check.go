package postgres

import (
	"context"
	"fmt"
	"strings"
)

// facts contains the properties of a table in the catalog.
type facts struct {
	oid                                uint32
	namespace, name                    string
	kind, persistence, replicaIdentity string
	role                               string // the role of the session, quoted as in SQL
	readable, filtered, inherited      bool
	hasKey                             bool // an index that identifies the rows
}

// checkServer returns an error if PostgreSQL cannot be followed.
func (s session) checkServer(ctx context.Context) error {
	row, err := s.row(ctx, `SELECT pg_catalog.current_setting('wal_level'), pg_catalog.current_setting('server_encoding'),
		pg_catalog.current_setting('server_version_num')::int / 10000`)
	if err != nil {
		return err
	}
	switch {
	case len(row[2]) < 2 || row[2] < "15":
		return fmt.Errorf("PostgreSQL %s is too old: version 15 or later is needed", row[2])
	case row[0] != "logical":
		return fmt.Errorf("wal_level is %s: set wal_level=logical and restart PostgreSQL", row[0])
	case row[1] != "UTF8":
		return fmt.Errorf("the encoding of the database is %s: UTF8 is needed, because JSON is UTF-8", row[1])
	}
	return nil
}

// facts reads the facts about the table with a name as in SQL.
func (s session) facts(ctx context.Context, name string) (*facts, error) {
	rows, err := s.query(ctx, `SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident,
		pg_catalog.has_table_privilege(c.oid, 'SELECT'), pg_catalog.row_security_active(c.oid),
		c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = c.oid),
		pg_catalog.quote_ident(current_user)
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.oid = pg_catalog.to_regclass(%s)`, literalOf(name))
	schema, _, qualified := strings.Cut(name, ".")
	if qualified && hasCode(err, insufficientPrivilege) {
		return nil, fmt.Errorf("%w; the owner of the schema can run this: GRANT USAGE ON SCHEMA %s TO %s", err, schema,
			identifier(s.ParameterStatus("session_authorization")))
	}
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("table %s does not exist, or its schema is not visible to the role", name)
	}
	row := texts(rows[0])
	oid, err := parseOID(rows[0][0])
	if err != nil {
		return nil, err
	}
	f := &facts{
		oid: oid, namespace: row[1], name: row[2], kind: row[3], persistence: row[4], replicaIdentity: row[5],
		readable: row[6] == "t", filtered: row[7] == "t", inherited: row[8] == "t", role: row[9],
	}
	index, err := s.row(ctx, "SELECT EXISTS %s", identityIndex(oid))
	if err != nil {
		return nil, err
	}
	f.hasKey = index[0] == "t"
	return f, nil
}

// check returns an error if the table cannot be served. Call it before the table is published: from
// then on, the application's UPDATEs of a table without a key would fail.
func (f *facts) check() error {
	table := identifier(f.namespace, f.name)
	switch {
	case f.kind != "r" && f.kind != "p":
		return fmt.Errorf("%s is no table (its kind is %q): views and foreign tables have no log", table, f.kind)
	case f.persistence != "p":
		return fmt.Errorf("table %s is unlogged or temporary, so its changes are not in the log", table)
	case f.inherited:
		return fmt.Errorf("table %s has tables that inherit from it: serve these instead", table)
	case f.replicaIdentity == "n":
		return fmt.Errorf("the replica identity of table %s is NOTHING: ALTER TABLE %s REPLICA IDENTITY DEFAULT", table, table)
	case !f.hasKey:
		return fmt.Errorf("table %s has no primary key, which gives its objects their names", table)
	case !f.readable:
		return fmt.Errorf("role %s may not read table %s: GRANT SELECT ON %s TO %s", f.role, table, table, f.role)
	case f.filtered:
		return fmt.Errorf("row-level security hides rows of table %s from the role, but the log has all rows: "+
			"use a role with BYPASSRLS", table)
	}
	return nil
}

// publish adds the tables to the publication, unless it already contains them.
func (s session) publish(ctx context.Context, publication string, all []*shape) error {
	rows, err := s.query(ctx, `SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot
		FROM pg_catalog.pg_publication WHERE pubname = %s`, literalOf(publication))
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = identifier(f.namespace, f.name)
	}
	if len(rows) == 0 {
		return s.change(ctx, fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish_via_partition_root = true)",
			identifier(publication), strings.Join(names, ", ")))
	}
	if string(rows[0][0]) != "t" {
		return fmt.Errorf("publication %s omits some changes: ALTER PUBLICATION %s SET (publish = "+
			"'insert, update, delete, truncate')", publication, identifier(publication))
	}
	var missing []string
	for i, f := range all {
		if f.partitioned && string(rows[0][1]) != "t" {
			return fmt.Errorf("table %s has partitions: ALTER PUBLICATION %s SET (publish_via_partition_root = true)",
				names[i], identifier(publication))
		}
		has, err := s.row(ctx, `SELECT count(*) FROM pg_catalog.pg_publication_tables
			WHERE pubname = %s AND schemaname = %s AND tablename = %s`,
			literalOf(publication), literalOf(f.namespace), literalOf(f.name))
		if err != nil {
			return err
		}
		if has[0] == "0" {
			missing = append(missing, names[i])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return s.change(ctx, fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", identifier(publication),
		strings.Join(missing, ", ")))
}

// change executes a statement. If the role may not execute it, the owner of the tables must do so.
func (s session) change(ctx context.Context, statement string) error {
	if _, err := s.query(ctx, "%s", statement); err != nil {
		return fmt.Errorf("%w; the owner of the tables can run this: %s", err, statement)
	}
	return nil
}
