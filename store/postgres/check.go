package postgres

import (
	"context"
	"fmt"
	"strings"
)

// partitioned is the kind of a partitioned table, as in pg_class.relkind.
const partitioned = "p"

// facts contains the properties of a table in the catalog.
type facts struct {
	oid                                uint32
	namespace, name                    string
	kind, persistence, replicaIdentity string
	role                               string // the role of the session, quoted as in SQL
	readable, filtered, inherited      bool
	hasKey                             bool // an index that identifies the rows
}

// facts reads the facts about the table with a name as in SQL.
func (s session) facts(ctx context.Context, name string) (*facts, error) {
	rows, err := s.query(ctx, `SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident,
		pg_catalog.has_table_privilege(c.oid, 'SELECT'), pg_catalog.row_security_active(c.oid),
		c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = c.oid),
		EXISTS (SELECT FROM pg_catalog.pg_index WHERE %s), pg_catalog.quote_ident(current_user)
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.oid = pg_catalog.to_regclass(%s)`, isIdentity, literalOf(name))
	schema, _, qualified := strings.Cut(name, ".")
	if qualified && hasCode(err, insufficientPrivilege) {
		return nil, Finding{
			Text: fmt.Sprintf("%v; the owner of the schema can run this", err), err: err,
			Remedy: "GRANT USAGE ON SCHEMA " + schema + " TO " + identifier(s.ParameterStatus("session_authorization")),
		}
	}
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("table %s does not exist, or its schema is not visible to the role%s", name, capitals(name))
	}
	row := texts(rows[0])
	oid, err := parseOID(rows[0][0])
	if err != nil {
		return nil, err
	}
	return &facts{
		oid: oid, namespace: row[1], name: row[2], kind: row[3], persistence: row[4], replicaIdentity: row[5],
		readable: row[6] == "t", filtered: row[7] == "t", inherited: row[8] == "t", hasKey: row[9] == "t",
		role: row[10],
	}, nil
}

// capitals returns advice if a name has capitals without quotes, which SQL ignores.
func capitals(name string) string {
	if strings.Contains(name, `"`) || name == strings.ToLower(name) {
		return ""
	}
	return "; put a name with capitals into quotes: " + identifier(strings.Split(name, ".")...)
}

func (f *facts) isSame(other *facts) bool { return f.oid == other.oid }

// check returns a [Finding] if the table cannot be served.
func (f *facts) check() error {
	if err := f.checkLog(); err != nil {
		return err
	}
	table := identifier(f.namespace, f.name)
	switch {
	case !f.readable:
		return Finding{
			Text:   "role " + f.role + " may not read table " + table,
			Remedy: "GRANT SELECT ON " + table + " TO " + f.role,
		}
	case f.filtered:
		return Finding{
			Text:   "row-level security hides rows of table " + table + " from the role, but the log has all rows",
			Remedy: "ALTER ROLE " + f.role + " BYPASSRLS",
		}
	}
	return nil
}

// checkLog returns a [Finding] if the log does not have what is needed to follow the table. Call it
// before the table is published: from then on, the application's UPDATEs of a table without a key
// would fail.
func (f *facts) checkLog() error {
	table := identifier(f.namespace, f.name)
	var problem, remedy string
	switch {
	case f.kind != "r" && f.kind != partitioned:
		problem = fmt.Sprintf("%s is no table (its kind is %q): views and foreign tables have no log", table, f.kind)
	case f.persistence != "p":
		problem = "table " + table + " is unlogged or temporary, so its changes are not in the log"
		remedy = "ALTER TABLE " + table + " SET LOGGED"
	case f.inherited:
		problem = "table " + table + " has tables that inherit from it: serve these instead"
	case f.replicaIdentity == "n":
		problem = "the replica identity of table " + table + " is NOTHING"
		remedy = "ALTER TABLE " + table + " REPLICA IDENTITY DEFAULT"
	case !f.hasKey:
		problem = "table " + table + " has no primary key, which gives its objects their names"
		remedy = "ALTER TABLE " + table + " ADD PRIMARY KEY (…)"
	default:
		return nil
	}
	return Finding{Text: problem, Remedy: remedy}
}
