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

// A mirror follows a Source, and is cut off after some events. Then it resumes at any of its
// servers.
type mirror struct {
	name    string
	servers []listwatch.Source
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
		m.objects[e.Object.Key] = spec(e.Object)
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
	w, err := m.servers[rng.IntN(len(m.servers))].Watch(ctx, q)
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
			fresh[e.Object.Key] = spec(e.Object)
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

// fault causes one random fault for the followers of the log, such as a lost connection or a change
// of a table.
func (d *database) fault(ctx context.Context, rng *rand.Rand) string {
	statements := slices.DeleteFunc([]string{
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
		"KILL",
	}, func(s string) bool { return !regexp.MustCompile(*chaosFaults).MatchString(s) })
	statement := statements[rng.IntN(len(statements))]
	if statement == "KILL" {
		d.server.Kill()
		d.server.Restart()
		return statement
	}
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, _ = conn.Exec(ctx, statement) // may fail, such as for a lack of locks
	return statement
}

func TestMirrorsSurviveChaos(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := newDatabase(t, chaosTables...)
	tables := []postgres.Table{
		{Name: "items", Namespace: "tenant"}, {Name: "debit"}, {Name: "credit"}, {Name: "parts", Namespace: "region"},
	}
	o := postgres.Options{SchemaInterval: 500 * time.Millisecond, Trace: &postgres.Trace{
		Lost: func(err error) { t.Logf("lost: %v", err) },
		Waiting: func(pid int, application string,
			age time.Duration,
		) {
			t.Log("waiting for", pid, application, age)
		},
		TableFailed: func(table string, err error) { t.Errorf("table %s failed: %v", table, err) },
	}}
	anchored := o
	anchored.Anchor, anchored.AnchorAge = "chaos", 200*time.Millisecond
	if seed%2 == 0 { // the servers advance the anchor beyond each other's states
		o = anchored
	}
	servers := []*postgres.DB{d.open(o, tables...), d.open(anchored, tables...)}
	mirrors := d.mirror(servers, tables, seed)

	written := 0
	for end, round := time.Now().Add(*chaosTime), uint64(0); time.Now().Before(end) && !t.Failed(); round++ {
		written += d.disturb(servers[0], seed+round)
		d.compare(mirrors, servers, tables)
	}
	d.stopMirrors()
	for m, table := range mirrors {
		t.Logf("mirror that %s, table %s: %d resumes", m.name, table, m.resumes)
	}
	for _, s := range servers {
		t.Logf("%+v", s.Stats())
	}
	t.Logf("%d transactions", written)
}

// disturb executes transactions and faults for roundTime. It returns the number of transactions.
func (d *database) disturb(server *postgres.DB, seed uint64) (written int) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), roundTime)
	defer cancel()
	var running sync.WaitGroup
	var count atomic.Int64
	for i := range 4 {
		w := &writer{url: d.url, id: i, written: &count}
		running.Go(func() { w.run(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	torn := 0
	running.Go(func() { torn = d.sums(ctx, server) })
	rng := rand.New(rand.NewPCG(seed, 100))
	for ctx.Err() == nil {
		d.Log(d.fault(ctx, rng))
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
func (d *database) sums(ctx context.Context, db *postgres.DB) (torn int) {
	for ctx.Err() == nil {
		page, err := db.Source("debit").List(ctx, listwatch.Query{Start: listwatch.StartAny})
		if err != nil {
			continue
		}
		exact := listwatch.Query{Start: listwatch.StartAt, Version: page.Version, Match: listwatch.MatchExact}
		other, err := db.Source("credit").List(ctx, exact)
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

// mirror starts the mirrors of all tables: one that stays, one that is often cut, and one that
// roams.
func (d *database) mirror(servers []*postgres.DB, tables []postgres.Table, seed uint64) map[*mirror]string {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	mirrors := map[*mirror]string{}
	for i, table := range tables {
		one := []listwatch.Source{servers[0].Source(table.Name)}
		both := []listwatch.Source{one[0], servers[1].Source(table.Name)}
		for k, m := range []*mirror{
			{name: "stays", servers: one},
			{name: "cut", servers: one, most: 12},
			{name: "roams", servers: both, most: 12},
		} {
			mirrors[m] = table.Name
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

// compare compares all servers and mirrors with the tables, while no transaction runs.
func (d *database) compare(mirrors map[*mirror]string, servers []*postgres.DB, tables []postgres.Table) {
	d.Helper()
	_ = d.conn.Close(d.Context()) // a fault may have ended it
	d.connect()
	d.endPrepared()
	wants := map[string]map[listwatch.Key]string{}
	for _, table := range tables {
		wants[table.Name] = d.rows(table)
	}
	for i, server := range servers {
		for _, table := range tables {
			d.await(func() error { // the TRUNCATE of a partition is not in the log
				page, err := server.Source(table.Name).List(d.Context(), listwatch.Query{})
				got := map[listwatch.Key]string{}
				for _, o := range page.Items {
					got[o.Key] = spec(o)
				}
				if diff := cmp.Diff(wants[table.Name], got); err == nil && diff != "" {
					err = fmt.Errorf("server %d, table %s: %s", i, table.Name, diff)
				}
				return err
			})
		}
	}
	for m, table := range mirrors {
		d.await(func() error {
			if diff := m.differsFrom(wants[table]); diff != "" {
				return fmt.Errorf("the mirror that %s, table %s: %s", m.name, table, diff)
			}
			return nil
		})
	}
}

// endPrepared ends the prepared transactions whose connections were lost.
func (d *database) endPrepared() {
	d.Helper()
	rows, err := d.conn.Query(d.Context(), "SELECT gid FROM pg_prepared_xacts")
	if err != nil {
		d.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.Fatal(err)
	}
	for _, name := range names {
		d.exec("COMMIT PREPARED '" + name + "'")
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
	name := "id::text"
	if table.Namespace != "" {
		namespace = table.Namespace
	}
	rows, err := d.conn.Query(d.Context(), "SELECT "+namespace+", "+name+", row_to_json(t)::text FROM "+table.Name+" t")
	if err != nil {
		d.Fatal(err)
	}
	all := map[listwatch.Key]string{}
	for rows.Next() {
		var key listwatch.Key
		var text string
		if err := rows.Scan(&key.Namespace, &key.Name, &text); err != nil {
			d.Fatal(err)
		}
		all[key] = spec(&listwatch.Object{Data: []byte(`{"spec":` + text + `}`)})
	}
	if err := rows.Err(); err != nil {
		d.Fatal(err)
	}
	return all
}
