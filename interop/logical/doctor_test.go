//go:build unix

package logical

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch/interop/internal/program"
	"github.com/listwatch/listwatch/store/postgres"
)

// findings returns the findings of Examine, by check.
func findings(t *testing.T, url string, o postgres.Options, tables ...postgres.Table) map[string]postgres.Finding {
	t.Helper()
	all, err := postgres.Examine(t.Context(), url, o, tables...)
	if err != nil {
		t.Fatalf("%v, after %v", err, all)
	}
	found := map[string]postgres.Finding{}
	for _, f := range all {
		found[f.Check] = f
	}
	return found
}

// The statements of the findings are executed as they are, until there is no problem any more. Then
// the tables can be served.
func TestRemediesMendTheirProblems(t *testing.T) {
	d := newDatabase(t,
		"CREATE TABLE orders (id int PRIMARY KEY, tenant text)", "ALTER TABLE orders REPLICA IDENTITY NOTHING",
		"CREATE UNLOGGED TABLE sessions (id int PRIMARY KEY)",
		"CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)", "CREATE TABLE keyed (id int PRIMARY KEY)",
		"ALTER TABLE keyed ENABLE ROW LEVEL SECURITY", "CREATE PUBLICATION mine FOR TABLE keyed WITH (publish = 'insert')",
		"CREATE ROLE reader LOGIN", "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
	url := strings.Replace(d.url, "user=postgres", "user=reader", 1)
	schema := d.url[strings.LastIndex(d.url, "=")+1:]
	o := postgres.Options{Publication: "mine", Writable: true}
	var tables []postgres.Table
	for _, name := range []string{"orders", "sessions", "parts", "keyed"} {
		tables = append(tables, postgres.Table{Name: schema + "." + name})
	}
	var executed []string
	for len(executed) < 30 {
		all, err := postgres.Examine(t.Context(), url, o, tables...)
		if err != nil {
			t.Fatal(err)
		}
		var remedies []string
		for _, f := range all {
			if f.Severity == postgres.Problem && !slices.Contains(remedies, f.Remedy) {
				remedies = append(remedies, f.Remedy)
			}
		}
		if len(remedies) == 0 {
			break
		}
		d.exec(remedies...)
		executed = append(executed, remedies...)
	}
	for i, statement := range executed {
		executed[i] = strings.NewReplacer(`"`+schema+`".`, "", schema, "S", `"`, "").Replace(statement)
	}
	slices.Sort(executed)
	want := []string{
		"ALTER PUBLICATION mine ADD TABLE orders, sessions, parts",
		"ALTER PUBLICATION mine SET (publish = 'insert, update, delete, truncate')",
		"ALTER PUBLICATION mine SET (publish_via_partition_root = true)",
		"ALTER ROLE reader BYPASSRLS", "ALTER ROLE reader REPLICATION",
		"ALTER TABLE orders REPLICA IDENTITY DEFAULT", "ALTER TABLE sessions SET LOGGED",
		"GRANT CONNECT ON DATABASE postgres TO reader",
		"GRANT INSERT, UPDATE, DELETE ON keyed TO reader", "GRANT INSERT, UPDATE, DELETE ON orders TO reader",
		"GRANT INSERT, UPDATE, DELETE ON parts TO reader", "GRANT INSERT, UPDATE, DELETE ON sessions TO reader",
		"GRANT SELECT ON keyed TO reader", "GRANT SELECT ON orders TO reader", "GRANT SELECT ON parts TO reader",
		"GRANT SELECT ON sessions TO reader", "GRANT USAGE ON SCHEMA S TO reader",
	}
	if diff := cmp.Diff(want, executed); diff != "" {
		t.Errorf("executed other statements (-want +got):\n%s", diff)
	}
	d.url = url
	d.open(o, tables...)
}

// Servers that no statement mends at once are found, too. Open fails with the same words.
func TestUnsuitableServersAreFound(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)",
		"CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
	table := postgres.Table{Name: "a"}
	check := func(url, check, text, remedy string) {
		t.Helper()
		f := findings(t, url, postgres.Options{}, table)[check]
		if f.Severity != postgres.Problem || !strings.Contains(f.Text, text) || f.Remedy != remedy {
			t.Errorf("%s: got %+v, want %q and %q", check, f, text, remedy)
		}
		if _, err := postgres.Open(t.Context(), url, postgres.Options{}, table); err == nil ||
			!strings.Contains(err.Error(), f.Error()) {
			t.Errorf("Open: got %v, want %v", err, f)
		}
	}
	check(strings.Replace(d.url, "/postgres?", "/ascii?", 1), "encoding", "SQL_ASCII: UTF8 is needed", "")
	d.server.Configure("wal_level=replica")
	check(d.url, "wal_level", "wal_level is replica", "ALTER SYSTEM SET wal_level = logical")
	d.server.Configure("max_replication_slots=1")
	d.connect()
	d.exec("SELECT pg_create_logical_replication_slot('other', 'pgoutput')")
	check(d.url, "slots", "1 of 1 replication slots are in use, 0 of them by listwatch",
		"ALTER SYSTEM SET max_replication_slots = 20")
	d.exec("SELECT pg_drop_replication_slot('other')")
	d.server.Configure("max_wal_senders=1")
	sender, err := pgx.Connect(t.Context(), d.url+"&replication=database")
	if err != nil {
		t.Fatal(err)
	}
	check(d.url, "connection", "max_wal_senders", "ALTER SYSTEM SET max_wal_senders = 20")
	_ = sender.Close(t.Context()) // the server is stopped next
	d.server.Stop()
	if err := os.WriteFile(filepath.Join(d.server.Data(), "standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.server.Restart()
	check(d.url, "server", "is a standby: connect to the primary", "")
}

// An administrator grants all rights at once, and learns which columns clients will miss.
func TestTablesAreExaminedCompletely(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE orders (id int PRIMARY KEY, net int, gross int GENERATED ALWAYS AS (net * 2) STORED)",
		"CREATE ROLE reader LOGIN REPLICATION")
	schema := d.url[strings.LastIndex(d.url, "=")+1:]
	d.exec("GRANT USAGE ON SCHEMA " + schema + " TO reader")
	url := strings.Replace(d.url, "user=postgres", "user=reader", 1)
	found := findings(t, url, postgres.Options{Writable: true}, postgres.Table{Name: "orders"})
	for check, want := range map[string]string{
		"table orders": "GRANT SELECT ON ", "writes to orders": "GRANT INSERT, UPDATE, DELETE ON ",
	} {
		if f := found[check]; f.Severity != postgres.Problem || !strings.HasPrefix(f.Remedy, want) {
			t.Errorf("%s: got %+v, want a problem and a remedy with %q", check, f, want)
		}
	}
	for step, statement := range []string{"SELECT", "CREATE PUBLICATION listwatch FOR TABLE orders"} {
		d.exec(statement)
		f := findings(t, d.url, postgres.Options{}, postgres.Table{Name: "orders"})["table orders"]
		const want = "has a primary key and 2 columns: the log does not have these generated columns, so they are not shown: gross"
		if f.Severity != postgres.Note || f.Text != want {
			t.Errorf("step %d: got %+v, want a note about gross", step, f)
		}
	}
}

// What does not prevent a start is a note.
func TestNotesAreNoProblems(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY, labels json)", "CREATE ROLE reader LOGIN REPLICATION",
		`INSERT INTO a VALUES (6, '{}'), (7, '{"x":7}'), (8, '[]')`,
		"GRANT SELECT ON a TO reader", "CREATE PUBLICATION listwatch FOR TABLE a WHERE (id > 5)",
		`DO $$ DECLARE f regprocedure; BEGIN -- its arguments depend on the version of PostgreSQL
			FOR f IN SELECT oid FROM pg_proc WHERE proname = 'pg_logical_emit_message'
			LOOP EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f); END LOOP; END $$`)
	d.server.Configure("wal_sender_timeout=0")
	d.connect()
	d.exec("SET application_name = 'slow job'", "BEGIN", "INSERT INTO a VALUES (1)")
	schema := d.url[strings.LastIndex(d.url, "=")+1:]
	d2, err := pgx.Connect(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d2.Close(context.Background()) }()
	if _, err := d2.Exec(t.Context(), "GRANT USAGE ON SCHEMA "+schema+" TO reader"); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(d.url, "user=postgres", "user=reader", 1)
	found := findings(t, url, postgres.Options{}, postgres.Table{Name: "a", LabelsFrom: "labels"})
	for check, want := range map[string]string{
		"rows of a": "2 of 3 rows are not objects: clients do not see them; the first is 7:",
		"timeout":   "ALTER SYSTEM SET wal_sender_timeout = '60s'", "retention": "max_slot_wal_keep_size is -1",
		"reads": "GRANT EXECUTE ON FUNCTION pg_logical_emit_message", "transactions": "slow job",
	} {
		if f := found[check]; f.Severity != postgres.Note || !strings.Contains(f.Error(), want) {
			t.Errorf("%s: got %+v, want a note with %q", check, f, want)
		}
	}
	if f := found["table a"]; f.Severity != postgres.Fine || !strings.Contains(f.Text, "the rows with (id > 5)") {
		t.Errorf("got %+v, want the condition of the publication", f)
	}
}

// The program prints the findings. Its exit code tells a script whether there is a problem.
func TestDoctorExaminesADatabase(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE orders (id int PRIMARY KEY, tenant text)", "CREATE TABLE keyless (id int)")
	path := program.Build(t)
	doctor := func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), path, append([]string{"doctor", "--postgres", d.url}, args...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := doctor("--table", "orders:namespace=tenant")
	if code != 0 || !strings.Contains(out, "ok       wal_level    wal_level is logical\n") ||
		!strings.Contains(out, "SQL: CREATE PUBLICATION") || !strings.HasSuffix(out, "no problems found\n") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if out, code = doctor("--table", "orders:namespace=tenat", "--table", "keyless"); code != 1 ||
		!strings.Contains(out, `no column "tenat"`) || !strings.Contains(out, "ADD PRIMARY KEY") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	out, _ = doctor("--table", "keyless", "-o", "json")
	var report struct {
		Problems int
		Findings []struct{ Check, Verdict string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Problems != 1 {
		t.Errorf("got %s, %v", out, err)
	}
	if out, code = doctor(); code != 0 || !strings.Contains(out, "SQL: CREATE TABLE listwatch_objects") {
		t.Errorf("without a table: exit code %d:\n%s", code, out)
	}
	if n := d.count("SELECT FROM pg_publication"); n != 0 {
		t.Errorf("doctor has created %d publications", n)
	}
	d.server.Stop()
	if out, code = doctor(); code != 1 || !strings.Contains(out, "PROBLEM  connection") {
		t.Errorf("without a server: exit code %d:\n%s", code, out)
	}
}
