package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// A session is a connection that reads the catalog. Its methods use the simple query protocol,
// because replication connections support no other.
type session struct{ *pgconn.PgConn }

// settings are the settings of every session, whatever the role and the database have. They
// determine the text of values, so that a row has the same text in a query and in the log. With
// row_security off, a query that must not see all rows fails. A table may take long to read.
var settings = map[string]string{
	"application_name": "listwatch", "client_encoding": "UTF8", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres",
	"TimeZone": "UTC", "extra_float_digits": "1", "bytea_output": "hex", "xmloption": "content", "array_nulls": "on",
	"row_security": "off", "lock_timeout": "30s", "statement_timeout": "0", "idle_in_transaction_session_timeout": "0",
	"standard_conforming_strings": "on",
}

// connect opens a session. If replicates is true, it can follow the log.
func connect(ctx context.Context, config *pgconn.Config, replicates bool) (session, error) {
	config = config.Copy()
	config.DialFunc = watchful(config.DialFunc, unreachableAfter)
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, unreachableAfter)
	maps.Copy(config.RuntimeParams, settings)
	if replicates {
		config.RuntimeParams["replication"] = "database"
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	return session{conn}, err
}

// query returns the rows of a query. NULL is nil.
func (s session) query(ctx context.Context, format string, args ...any) ([][][]byte, error) {
	results, err := s.Exec(ctx, fmt.Sprintf(format, args...)).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return results[len(results)-1].Rows, nil
}

// row returns the only row of a query as texts.
func (s session) row(ctx context.Context, format string, args ...any) ([]string, error) {
	rows, err := s.query(ctx, format, args...)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("a query of the catalog has %d rows instead of 1", len(rows))
	}
	return texts(rows[0]), nil
}

// eachRow calls use with each row of a table, whose values are valid until use returns. An error of
// use ends the query.
func (s session) eachRow(ctx context.Context, of *shape, use func(tuple) error) (err error) {
	results := s.Exec(ctx, of.selectAll())
	defer func() { err = errors.Join(err, results.Close()) }()
	for results.NextResult() {
		rows := results.ResultReader()
		for rows.NextRow() {
			if err := use(tupleOf(rows.Values())); err != nil {
				return err
			}
		}
	}
	return nil
}

func texts(row [][]byte) []string {
	all := make([]string, len(row))
	for i, v := range row {
		all[i] = string(v)
	}
	return all
}

func literalOf(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func identifier(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, part := range parts {
		quoted[i] = `"` + strings.ReplaceAll(part, `"`, `""`) + `"`
	}
	return strings.Join(quoted, ".")
}

// startLock is the advisory lock of servers that start. The number is arbitrary.
const startLock = 7_103_884_321

// alone calls f while it holds a lock, so that servers that start at the same time do not create
// the same publication.
func (s session) alone(ctx context.Context, f func() error) error {
	if _, err := s.query(ctx, "SELECT pg_catalog.pg_advisory_lock(%d)", startLock); err != nil {
		return err
	}
	err := f()
	_, unlockErr := s.query(ctx, "SELECT pg_catalog.pg_advisory_unlock(%d)", startLock)
	return cmp.Or(err, unlockErr)
}

// epoch returns an identifier of the history of the log: the cluster, its timeline and the
// database. The session must be open for replication.
func (s session) epoch(ctx context.Context) (string, error) {
	system, err := s.row(ctx, "IDENTIFY_SYSTEM")
	if err != nil {
		return "", err
	}
	database, err := s.row(ctx, "SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()")
	if err != nil {
		return "", err
	}
	return system[0] + "." + system[1] + "." + database[0], nil
}

// shapeOf reads the shape of the table that facts describe, and checks that the table can be
// served. If publication is empty, the shape has the columns of a new publication.
func (s session) shapeOf(ctx context.Context, publication string, t *Table, facts *facts) (*shape, error) {
	if err := facts.check(); err != nil {
		return nil, err
	}
	shape := &shape{facts: facts}
	columns := "a.attgenerated = ''"
	if publication != "" {
		part := partOf(publication, facts)
		rows, err := s.query(ctx, "SELECT rowfilter FROM %s", part)
		switch {
		case err != nil:
			return nil, err
		case len(rows) == 0:
			return nil, fmt.Errorf("table %s is not in publication %s any more", t.Name, publication)
		}
		shape.filter = string(rows[0][0])
		// Before PostgreSQL 18 the publication lists generated columns that it does not send.
		columns = `a.attname = ANY ((SELECT attnames FROM ` + part + `)::name[]) AND (a.attgenerated = '' OR
			pg_catalog.current_setting('server_version_num')::int >= 180000)`
	}
	if err := s.readColumns(ctx, shape, columns); err != nil {
		return nil, err
	}
	now, err := s.definitions(ctx, nil, publication, facts.oid)
	if err != nil {
		return nil, err
	}
	shape.fingerprint = now.tables[facts.oid]
	return newShape(shape, t)
}

// partOf returns an SQL expression for the row of a table in pg_publication_tables.
func partOf(publication string, f *facts) string {
	return fmt.Sprintf("(SELECT * FROM pg_catalog.pg_publication_tables "+
		"WHERE pubname = %s AND schemaname = %s AND tablename = %s) published",
		literalOf(publication), literalOf(f.namespace), literalOf(f.name))
}

// readColumns sets the columns of sh to those for which a condition holds, the generated columns
// for which it does not hold, and the identity.
func (s session) readColumns(ctx context.Context, sh *shape, condition string) error {
	rows, err := s.query(ctx, `SELECT a.attname, a.atttypid, k.place, %s FROM pg_catalog.pg_attribute a
		LEFT JOIN (SELECT unnest(indkey) AS attnum, generate_series(0, indnkeyatts - 1) AS place
			FROM pg_catalog.pg_index, pg_catalog.pg_class c WHERE c.oid = %[2]d AND %[3]s) k
			ON k.attnum = a.attnum AND k.place IS NOT NULL
		WHERE a.attrelid = %[2]d AND a.attnum > 0 AND NOT a.attisdropped AND (%[1]s OR a.attgenerated <> '')
		ORDER BY a.attnum`, condition, sh.oid, isIdentity)
	if err != nil {
		return err
	}
	types := types{session: s, known: map[uint32]*dataType{}}
	places := map[string]int{} // by place in the index
	for _, row := range rows {
		if string(row[3]) != "t" {
			sh.generated = append(sh.generated, string(row[0]))
			continue
		}
		oid, err := parseOID(row[1])
		if err != nil {
			return err
		}
		kind, err := types.of(ctx, oid)
		if err != nil {
			return err
		}
		if row[2] != nil {
			places[string(row[2])] = len(sh.columns)
		}
		sh.columns = append(sh.columns, column{name: string(row[0]), oid: oid, kind: kind})
	}
	for at := range len(places) {
		sh.identity = append(sh.identity, places[strconv.Itoa(at)])
	}
	if len(sh.identity) == 0 {
		return fmt.Errorf("the publication omits the primary key of table %s", sh.name)
	}
	return nil
}

// isIdentity is the condition in SQL for the row of pg_index of the index that identifies the rows
// of the table c: the index named in REPLICA IDENTITY USING INDEX, or else the primary key.
const isIdentity = "indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN indisreplident ELSE indisprimary END"

// types reads data types, each once.
type types struct {
	session
	known map[uint32]*dataType
}

// forms contains, by OID, the forms of types. Values of most other types become JSON strings.
var forms = map[uint32]form{
	16: asBool, 20: asNumber, 21: asNumber, 23: asNumber, 700: asNumber, 701: asNumber, 1700: asNumber,
	114: asJSON, 3802: asJSON, 1114: asTime, 1184: asTimeZ,
	22: asString, 30: asString, // int2vector and oidvector, which are no arrays in SQL
}

// of returns the type with the given OID. A type is never a part of itself.
func (t types) of(ctx context.Context, oid uint32) (*dataType, error) {
	if known := t.known[oid]; known != nil {
		return known, nil
	}
	if f, ok := forms[oid]; ok {
		return &dataType{form: f}, nil
	}
	row, err := t.row(ctx, `SELECT t.typtype, t.typcategory, t.typelem, t.typbasetype, t.typrelid, e.typdelim
		FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem WHERE t.oid = %d`, oid)
	if err != nil {
		return nil, err
	}
	kind, category, relation := row[0], row[1], row[4]
	element, err1 := parseOID([]byte(row[2]))
	base, err2 := parseOID([]byte(row[3]))
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("type %d has no readable description", oid)
	}
	result := new(dataType)
	switch {
	case kind == "d":
		result, err = t.of(ctx, base)
	case category == "A" && element != 0:
		result.form, result.delimiter = asArray, row[5][0]
		result.element, err = t.of(ctx, element)
	case kind == "c":
		result.form = asComposite
		result.members, err = t.members(ctx, relation)
	}
	if err == nil {
		t.known[oid] = result
	}
	return result, err
}

// members returns the columns of a composite type.
func (t types) members(ctx context.Context, relation string) ([]member, error) {
	rows, err := t.query(ctx, `SELECT attname, atttypid FROM pg_catalog.pg_attribute
		WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, relation)
	if err != nil {
		return nil, err
	}
	var all []member
	for _, row := range rows {
		oid, err := parseOID(row[1])
		if err != nil {
			return nil, err
		}
		kind, err := t.of(ctx, oid)
		if err != nil {
			return nil, err
		}
		all = append(all, member{string(row[0]), *kind})
	}
	return all, nil
}

func parseOID(text []byte) (uint32, error) {
	oid, err := strconv.ParseUint(string(text), 10, 32)
	return uint32(oid), err
}

// A fingerprint identifies the properties of a table that may change without a message in the log.
type fingerprint struct {
	// definition covers the columns and their values in old rows, the types of the columns, the
	// partitions, the identity and the publication. files covers the files of the table, which a
	// TRUNCATE replaces, too.
	definition, files string
}

// definitions are the fingerprints of tables at a position in the log.
type definitions struct {
	at       lsn                    // all changes that the fingerprints show are before it
	tables   map[uint32]fingerprint // by OID, without tables that do not exist
	retained uint64                 // the length of the log that PostgreSQL retains for slots
}

// definitions reads the fingerprints of tables, which must not be none.
func (s session) definitions(
	ctx context.Context, slots []string, publication string, tables ...uint32,
) (d definitions, err error) {
	oids, names := make([]string, len(tables)), make([]string, len(slots))
	for i, oid := range tables {
		oids[i] = fmt.Sprint(oid)
	}
	for i, slot := range slots {
		names[i] = literalOf(slot)
	}
	// The types of the columns include those of their elements and members.
	results, err := s.Exec(ctx, fmt.Sprintf(`SELECT c.oid, pg_catalog.md5(pg_catalog.concat_ws('|', c.relreplident,
			c.relrowsecurity, n.nspname, c.relname, (SELECT indexrelid FROM pg_catalog.pg_index WHERE %s),
			(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(':', attname, atttypid, atttypmod, attgenerated,
				attmissingval), ',' ORDER BY attnum) FROM pg_catalog.pg_attribute
				WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
			(WITH RECURSIVE used(oid) AS (
				SELECT atttypid FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
				UNION SELECT part.oid FROM used JOIN pg_catalog.pg_type t ON t.oid = used.oid CROSS JOIN LATERAL (
					VALUES (t.typelem), (t.typbasetype) UNION ALL SELECT atttypid FROM pg_catalog.pg_attribute
					WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped) part(oid) WHERE part.oid <> 0)
			SELECT pg_catalog.string_agg(pg_catalog.concat_ws(':', t.oid,
				(SELECT pg_catalog.string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_catalog.pg_enum
					WHERE enumtypid = t.oid),
				(SELECT pg_catalog.string_agg(attname || ' ' || atttypid, ',' ORDER BY attnum) FROM pg_catalog.pg_attribute
					WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped)), ',' ORDER BY t.oid)
				FROM used JOIN pg_catalog.pg_type t ON t.oid = used.oid WHERE t.typtype IN ('e', 'c')),
			(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(':', t.relid, h.xmin), ',' ORDER BY t.relid)
				FROM pg_catalog.pg_partition_tree(c.oid) t LEFT JOIN pg_catalog.pg_inherits h ON h.inhrelid = t.relid),
			(SELECT pg_catalog.concat_ws(':', p.*::text, t.attnames, t.rowfilter) FROM pg_catalog.pg_publication p
				JOIN pg_catalog.pg_publication_tables t ON t.pubname = p.pubname
				WHERE p.pubname = %s AND t.schemaname = n.nspname AND t.tablename = c.relname))),
		pg_catalog.concat_ws(':', c.relfilenode, (SELECT pg_catalog.string_agg(k.relfilenode::text, ','
			ORDER BY t.relid) FROM pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class k ON k.oid = t.relid))
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN (%s);
		SELECT at, coalesce((SELECT max(pg_catalog.pg_wal_lsn_diff(at, restart_lsn)::int8)
			FROM pg_catalog.pg_replication_slots WHERE slot_name = ANY (ARRAY[%s]::name[])), 0)
			FROM pg_catalog.pg_current_wal_insert_lsn() at`,
		isIdentity, literalOf(publication), strings.Join(oids, ", "), strings.Join(names, ", "))).ReadAll()
	if err != nil {
		return d, err
	}
	d.tables = map[uint32]fingerprint{}
	for _, row := range results[0].Rows {
		oid, err := parseOID(row[0])
		if err != nil {
			return d, err
		}
		d.tables[oid] = fingerprint{definition: string(row[1]), files: string(row[2])}
	}
	row := texts(results[1].Rows[0])
	if d.at, err = parseLSN(row[0]); err == nil {
		d.retained, err = strconv.ParseUint(row[1], 10, 64)
	}
	return d, err
}
