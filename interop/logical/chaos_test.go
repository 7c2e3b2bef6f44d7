//go:build unix

package logical

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/postgres"
)

// chaosTables are the tables of the chaos test: a table with namespaces that its key lacks, a pair
// of tables whose sum is constant, large values, and partitions.
var chaosTables = []string{
	"CREATE TABLE items (id int PRIMARY KEY, tenant text NOT NULL, n int NOT NULL DEFAULT 0, big text)",
	"ALTER TABLE items ALTER big SET STORAGE EXTERNAL",
	"CREATE TABLE debit (id int PRIMARY KEY, amount int NOT NULL)",
	"CREATE TABLE credit (id int PRIMARY KEY, amount int NOT NULL)",
	"CREATE TABLE parts (region text, id int, n int, PRIMARY KEY (region, id)) PARTITION BY LIST (region)",
	"CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a')",
	"CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b')",
	"INSERT INTO debit SELECT i, 100 FROM generate_series(1, 10) i",
	"INSERT INTO credit SELECT i, 100 FROM generate_series(1, 10) i",
}

var (
	chaosTime   = flag.Duration("for", 10*time.Second, "time of the chaos test")
	chaosFaults = flag.String("faults", "", "regular expression for the faults of the chaos test")
	patience    = flag.Duration("patience", time.Minute, "time until the mirrors must equal the tables")
)

// roundTime is the time after which writers and faults pause, and all mirrors are compared with the
// tables. Comparisons that are far apart would miss a difference that the next reading mends.
const roundTime = 5 * time.Second

// A served is a table, or a collection of documents, that the servers of the chaos test serve.
type served struct {
	name    string
	content func(*listwatch.Object) string
	rows    func() map[listwatch.Key]string // the content that PostgreSQL has
}

// A mirror follows a table or a collection, and is cut off after some events. Then it resumes at
// any of its servers.
type mirror struct {
	served
	name    string
	servers []*replica
	most    int               // the maximum number of events before a cut; zero means no cuts
	version listwatch.Version // zero if the mirror must list again
	resumes int

	mu      sync.Mutex
	objects map[listwatch.Key]string // guarded by mu
}

// receive applies an event that follows the state.
func (m *mirror) receive(e listwatch.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Type == listwatch.Deleted {
		delete(m.objects, e.Object.Key)
	} else {
		m.objects[e.Object.Key] = m.content(e.Object)
	}
}

// differsFrom returns how m differs from want.
func (m *mirror) differsFrom(want map[listwatch.Key]string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Diff(want, m.objects)
}

func (m *mirror) run(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		err := m.follow(ctx, rng)
		if errors.Is(err, listwatch.Expired) {
			m.version = 0
		}
		m.resumes++
		if err != nil {
			wait(ctx, 20*time.Millisecond)
		}
	}
}

func (m *mirror) follow(ctx context.Context, rng *rand.Rand) error {
	q := listwatch.Query{Start: listwatch.StartAny, Bookmarks: true}
	if m.version != 0 {
		q = listwatch.Query{Start: listwatch.StartAt, Version: m.version, Bookmarks: true}
	}
	w, err := m.servers[rng.IntN(len(m.servers))].source(m.served.name).Watch(ctx, q)
	if err != nil {
		return err
	}
	defer w.Close()
	left := -1
	if m.most > 0 {
		left = 1 + rng.IntN(m.most)
	}
	listing := m.version == 0
	fresh := map[listwatch.Key]string{}
	for left != 0 {
		var batch [1]listwatch.Event
		if _, err := w.Next(ctx, batch[:]); err != nil {
			return err
		}
		switch e := batch[0]; {
		case e.Type == listwatch.Synced:
			m.mu.Lock()
			m.objects = fresh
			m.mu.Unlock()
			m.version, listing = e.Version, false
		case e.Type == listwatch.Bookmark:
			m.version = e.Version
		case listing:
			fresh[e.Object.Key] = m.content(e.Object)
		default:
			m.receive(e)
			m.version, left = e.Version, left-1
		}
	}
	return nil
}

// spec returns the normalized JSON of an object's spec.
func spec(o *listwatch.Object) string {
	var doc struct{ Spec map[string]any }
	if err := json.Unmarshal(o.Data, &doc); err != nil {
		return err.Error()
	}
	text, _ := json.Marshal(doc.Spec) // it was just decoded
	return string(text)
}

// A writer executes random transactions.
type writer struct {
	url     string
	id      int
	written *atomic.Int64
}

func (w *writer) run(ctx context.Context, rng *rand.Rand) {
	var conn *pgx.Conn
	for ctx.Err() == nil {
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = pgx.Connect(ctx, w.url); err != nil {
				conn = nil
				wait(ctx, 10*time.Millisecond)
				continue
			}
		}
		// Errors are part of the test: conflicts, and lost connections.
		sql := w.transaction(rng)
		if _, err := conn.Exec(ctx, sql); err != nil {
			_, _ = conn.Exec(ctx, "ROLLBACK")
			continue
		}
		if strings.Contains(sql, "PREPARE") {
			_, _ = conn.Exec(ctx, "COMMIT PREPARED "+w.prepared())
		}
		w.written.Add(1)
	}
	if conn != nil {
		_ = conn.Close(context.Background())
	}
}

// prepared returns the name of the prepared transaction of w. While a prepared transaction is left
// from a lost connection, it keeps the name, so that w cannot prepare another one.
func (w *writer) prepared() string { return fmt.Sprintf("'w%d'", w.id) }

func (w *writer) transaction(rng *rand.Rand) string {
	statements := []string{"BEGIN"}
	for range 1 + rng.IntN(6) {
		statements = append(statements, w.statement(rng))
		if rng.IntN(6) == 0 {
			statements = append(statements, "SAVEPOINT s", w.statement(rng), "ROLLBACK TO SAVEPOINT s")
		}
	}
	switch rng.IntN(12) {
	case 0:
		statements = append(statements, "ROLLBACK")
	case 1:
		statements = append(statements, "PREPARE TRANSACTION "+w.prepared())
	default:
		statements = append(statements, "COMMIT")
	}
	return strings.Join(statements, ";")
}

func (w *writer) statement(rng *rand.Rand) string {
	id, tenant := rng.IntN(60), string(rune('a'+rng.IntN(3)))
	switch rng.IntN(12) {
	case 0, 1:
		return fmt.Sprintf(
			"INSERT INTO items VALUES (%d, '%s', %d, repeat('%s', %d)) ON CONFLICT (id) DO UPDATE SET n = items.n + 1",
			id, tenant, rng.IntN(100), tenant, rng.IntN(6000))
	case 2, 3:
		return fmt.Sprintf("UPDATE items SET n = n + 1 WHERE id = %d", id)
	case 4:
		return fmt.Sprintf("UPDATE items SET tenant = '%s' WHERE id = %d", tenant, id)
	case 5:
		return fmt.Sprintf("DELETE FROM items WHERE id = %d", id)
	case 6:
		return fmt.Sprintf(
			"UPDATE items SET id = id + 100 WHERE id = %d AND NOT EXISTS (SELECT FROM items WHERE id = %d)",
			id, id+100)
	case 7:
		return fmt.Sprintf("UPDATE items SET n = n - 1 WHERE id BETWEEN %d AND %d", id, id+10)
	case 8, 9:
		return fmt.Sprintf(
			"UPDATE debit SET amount = amount - 1 WHERE id = %d; UPDATE credit SET amount = amount + 1 WHERE id = %[1]d",
			1+rng.IntN(10))
	case 10:
		return fmt.Sprintf(
			"INSERT INTO parts VALUES ('%s', %d, 1) ON CONFLICT (region, id) DO UPDATE SET n = parts.n + 1",
			string(rune('a'+rng.IntN(2))), rng.IntN(20))
	default:
		return fmt.Sprintf("DELETE FROM parts WHERE id = %d", rng.IntN(20))
	}
}

// chaosFaultStatements are the faults: statements, and names of faults of processes.
var chaosFaultStatements = []string{
	"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active",
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type <> 'checkpointer'",
	"ALTER TABLE items ADD COLUMN IF NOT EXISTS extra int DEFAULT 7",
	"ALTER TABLE items DROP COLUMN IF EXISTS extra",
	"VACUUM FULL items",
	"TRUNCATE items",
	"TRUNCATE parts_a",
	"ALTER TABLE parts DETACH PARTITION parts_b; UPDATE parts_b SET n = n + 5; ALTER TABLE parts ATTACH PARTITION parts_b FOR VALUES IN ('b')",
	"ALTER TABLE items ALTER COLUMN n TYPE bigint",
	"ALTER TABLE items ALTER COLUMN n TYPE int",
	"ALTER TABLE objects ADD COLUMN IF NOT EXISTS extra int DEFAULT 7",
	"ALTER TABLE objects DROP COLUMN IF EXISTS extra",
	"VACUUM FULL objects",
	killServer, crashServer, restartReplica,
}

const (
	killServer     = "KILL"    // ends all processes of PostgreSQL, which is then started again
	crashServer    = "CRASH"   // kills one process of PostgreSQL, which then recovers by itself
	restartReplica = "RESTART" // of one of the servers that follow PostgreSQL
)

// fault causes one random fault for the followers of the log, such as a lost connection or a change
// of a table.
func (d *database) fault(ctx context.Context, rng *rand.Rand, servers []*replica) string {
	statements := slices.DeleteFunc(slices.Clone(chaosFaultStatements), func(s string) bool {
		return !regexp.MustCompile(*chaosFaults).MatchString(s)
	})
	statement := statements[rng.IntN(len(statements))]
	switch statement {
	case killServer:
		d.server.Kill()
		d.server.Restart()
		return statement
	case restartReplica:
		servers[rng.IntN(len(servers))].restart()
		return statement
	}
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if statement == crashServer {
		if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL); err != nil {
			return err.Error()
		}
		return statement
	}
	d.endPrepared(ctx, conn, "prepared < now() - interval '300 ms'")
	// Either may fail, such as for a lack of locks.
	_, _ = conn.Exec(ctx, "SET lock_timeout = '1s'")
	_, _ = conn.Exec(ctx, statement)
	return statement
}

func TestMirrorsSurviveChaos(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := newDatabase(t, append(chaosTables, chaosDocuments...)...)
	if seed/2%2 == 0 {
		d.exec("ALTER DATABASE postgres SET synchronous_commit = off")
	}
	tables := []postgres.Table{
		{Name: "items", Namespace: "tenant"}, {Name: "debit"}, {Name: "credit"}, {Name: "parts", Namespace: "region"},
	}
	o := postgres.Options{Documents: "objects", SchemaInterval: 500 * time.Millisecond, Trace: &postgres.Trace{
		Lost: func(err error) { t.Logf("lost: %v", err) },
		Waiting: func(pid int, application string, age time.Duration) {
			t.Log("waiting for", pid, application, age)
		},
		RowHidden: func(table, row string, err error) {
			if !regexp.MustCompile("^objects, collection (notes|marks)$").MatchString(table) {
				t.Errorf("%s: row %s is hidden: %v", table, row, err)
			}
		},
		TableFailed: func(table string, err error) { t.Errorf("table %s failed: %v", table, err) },
	}}
	anchored := o
	anchored.Anchor, anchored.AnchorAge = "chaos", 200*time.Millisecond
	if seed%2 == 0 { // the servers advance the anchor beyond each other's states
		o = anchored
	}
	servers := []*replica{d.replica(o, tables), d.replica(anchored, tables)}
	mirrors := d.mirror(servers, d.served(tables), seed)
	documents := newDocumentWriters(d, servers)

	written := 0
	for end, round := time.Now().Add(*chaosTime), uint64(0); time.Now().Before(end) && !t.Failed(); round++ {
		written += d.disturb(servers, documents, seed+round)
		d.compare(mirrors, servers)
		documents.compare()
	}
	d.stopMirrors()
	for _, m := range mirrors {
		t.Logf("mirror of %s that %s: %d resumes", m.served.name, m.name, m.resumes)
	}
	for _, s := range servers {
		t.Logf("%+v", s.stats())
	}
	documents.log()
	t.Logf("%d transactions", written)
}

// disturb executes transactions and faults for roundTime. It returns the number of transactions.
func (d *database) disturb(servers []*replica, documents *documentWriters, seed uint64) (written int) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), roundTime)
	defer cancel()
	var running sync.WaitGroup
	var count atomic.Int64
	for i := range 4 {
		w := &writer{url: d.url, id: i, written: &count}
		running.Go(func() { w.run(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	documents.run(ctx, &running, seed)
	torn := 0
	running.Go(func() { torn = d.sums(ctx, servers[0]) })
	rng := rand.New(rand.NewPCG(seed, 100))
	for ctx.Err() == nil {
		d.Log(d.fault(ctx, rng, servers))
		wait(ctx, time.Duration(rng.IntN(1000))*time.Millisecond)
	}
	running.Wait()
	if torn > 0 {
		d.Errorf("%d pairs of lists saw half a transaction", torn)
	}
	return int(count.Load())
}

// sums lists both tables at the same version, repeatedly, and counts the states in which their sum
// is wrong.
func (d *database) sums(ctx context.Context, server *replica) (torn int) {
	for ctx.Err() == nil {
		page, err := server.source("debit").List(ctx, listwatch.Query{Start: listwatch.StartAny})
		if err != nil {
			wait(ctx, time.Millisecond)
			continue
		}
		exact := listwatch.Query{Start: listwatch.StartAt, Version: page.Version, Match: listwatch.MatchExact}
		other, err := server.source("credit").List(ctx, exact)
		if err != nil {
			continue
		}
		sum := 0
		for _, o := range append(page.Items, other.Items...) {
			var doc struct{ Spec struct{ Amount int } }
			if json.Unmarshal(o.Data, &doc) == nil {
				sum += doc.Spec.Amount
			}
		}
		if sum != 2000 {
			torn++
		}
	}
	return torn
}

// served returns the tables and collections that the servers serve.
func (d *database) served(tables []postgres.Table) (all []served) {
	for _, table := range tables {
		all = append(all, served{table.Name, spec, func() map[listwatch.Key]string { return d.rows(table) }})
	}
	for _, c := range chaosCollections {
		rows := func() map[listwatch.Key]string { return d.documents(c) }
		all = append(all, served{c.QualifiedName(), document, rows})
	}
	return all
}

// mirror starts the mirrors of everything that is served: one that stays, one that is often cut,
// and one that roams.
func (d *database) mirror(servers []*replica, all []served, seed uint64) (mirrors []*mirror) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i, s := range all {
		roaming := servers
		if s.name == "parts" {
			// Servers notice the TRUNCATE of a partition at different times (docs/postgres.md).
			roaming = servers[1:]
		}
		for k, m := range []*mirror{
			{name: "stays", servers: servers[:1]},
			{name: "cut", servers: servers[:1], most: 12},
			{name: "roams", servers: roaming, most: 12},
		} {
			m.served = s
			mirrors = append(mirrors, m)
			running.Go(func() {
				m.run(ctx, rand.New(rand.NewPCG(seed, uint64(1000+10*i+k))))
			})
		}
	}
	d.Cleanup(running.Wait)
	d.Cleanup(cancel)
	d.stopMirrors = func() { cancel(); running.Wait() }
	return mirrors
}

// compare compares all servers and mirrors with PostgreSQL, while no transaction runs.
func (d *database) compare(mirrors []*mirror, servers []*replica) {
	d.Helper()
	_ = d.conn.Close(d.Context()) // a fault may have ended it
	d.await(func() error {        // PostgreSQL may be recovering from a crash
		conn, err := pgx.Connect(d.Context(), d.url)
		if err == nil {
			err = conn.Close(d.Context())
		}
		return err
	})
	d.connect()
	d.endPrepared(d.Context(), d.conn, "true")
	d.awaitWriters()
	wants := map[string]map[listwatch.Key]string{}
	for _, m := range mirrors {
		s := m.served
		if wants[s.name] != nil {
			continue
		}
		wants[s.name] = s.rows()
		for i, server := range servers {
			d.await(func() error { // the TRUNCATE of a partition is not in the log
				page, err := server.source(s.name).List(d.Context(), listwatch.Query{})
				got := map[listwatch.Key]string{}
				for _, o := range page.Items {
					got[o.Key] = s.content(o)
				}
				if diff := cmp.Diff(wants[s.name], got); err == nil && diff != "" {
					err = fmt.Errorf("server %d, %s: %s", i, s.name, diff)
				}
				return err
			})
		}
	}
	for i, server := range servers {
		if shown, all := d.shownDocuments(wants), d.count("SELECT FROM objects"); shown+server.stats().Hidden != all {
			d.Errorf("server %d: %d rows are hidden, %d of %d should be", i, server.stats().Hidden, all-shown, all)
		}
	}
	for _, m := range mirrors {
		d.await(func() error {
			if diff := m.differsFrom(wants[m.served.name]); diff != "" {
				return fmt.Errorf("the mirror of %s that %s: %s", m.served.name, m.name, diff)
			}
			return nil
		})
	}
}

// awaitWriters waits for the end of transactions whose writers have lost their connections.
func (d *database) awaitWriters() {
	d.Helper()
	d.await(func() error {
		n := d.count(`SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
			AND backend_xid IS NOT NULL`)
		if n > 0 {
			return fmt.Errorf("%d transactions have not ended", n)
		}
		return nil
	})
}

// endPrepared ends the prepared transactions for which a condition holds. Their connections were
// lost.
func (d *database) endPrepared(ctx context.Context, conn *pgx.Conn, condition string) {
	rows, err := conn.Query(ctx, "SELECT gid FROM pg_prepared_xacts WHERE "+condition)
	if err != nil {
		return // the connection was lost, too
	}
	names, _ := pgx.CollectRows(rows, pgx.RowTo[string]) // a missing name is found later
	for _, name := range names {
		_, _ = conn.Exec(ctx, "COMMIT PREPARED '"+name+"'") // the writer may have done it
	}
}

// wait waits until ctx ends, for d at most.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// await calls f until it succeeds.
func (d *database) await(f func() error) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), *patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return
		}
		if wait(ctx, 50*time.Millisecond); ctx.Err() != nil {
			d.Fatal(err)
		}
	}
}

// rows returns the rows of a table as specs, by key.
func (d *database) rows(table postgres.Table) map[listwatch.Key]string {
	d.Helper()
	namespace := "''"
	if table.Namespace != "" {
		namespace = table.Namespace
	}
	all := map[listwatch.Key]string{}
	d.eachRow(func(key listwatch.Key, row []byte) {
		all[key] = spec(&listwatch.Object{Data: []byte(`{"spec":` + string(row) + `}`)})
	}, "SELECT "+namespace+", id::text, row_to_json(t)::text FROM "+table.Name+" t")
	return all
}

// eachRow calls f for each row of a query, which returns a namespace, a name and JSON.
func (d *database) eachRow(f func(key listwatch.Key, data []byte), query string, args ...any) {
	d.Helper()
	rows, err := d.conn.Query(d.Context(), query, args...)
	if err != nil {
		d.Fatal(err)
	}
	var key listwatch.Key
	var text string
	_, err = pgx.ForEachRow(rows, []any{&key.Namespace, &key.Name, &text}, func() error {
		f(key, []byte(text))
		return nil
	})
	if err != nil {
		d.Fatal(err)
	}
}
