//go:build unix

package logical

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/store/postgres"
	"github.com/listwatch/listwatch/watchcache"
)

// BenchmarkTransactions measures rows per second from the commit of large and small transactions to
// the tables.
func BenchmarkTransactions(b *testing.B) {
	for _, rows := range []int{1, 100, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			d := newDatabase(b, "CREATE TABLE a (id int PRIMARY KEY, x text, n int)",
				"INSERT INTO a SELECT i, repeat('x', 300), 0 FROM generate_series(1, 100000) i")
			db := d.open(postgres.Options{}, postgres.Table{Name: "a"})
			source := db.Source("a")
			b.ResetTimer()
			n := 0
			for b.Loop() {
				d.exec(fmt.Sprintf("UPDATE a SET n = n + 1 WHERE id BETWEEN %d AND %d", n%1000, n%1000+rows-1))
				n++
				if rows > 1 || n%100 == 0 {
					begun := time.Now()
					d.list(source)
					b.ReportMetric(float64(time.Since(begun).Milliseconds()), "ms-behind")
				}
			}
			b.ReportMetric(float64(n*rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// large creates a table of 200,000 rows, whose objects have 360 bytes.
var large = []string{
	"CREATE TABLE large (id int PRIMARY KEY, x text, n int)",
	"INSERT INTO large SELECT i, repeat('x', 200), 0 FROM generate_series(1, 200000) i",
}

// BenchmarkFirstState measures the time until a server has the rows of a large table, and the
// memory of its process at that time.
func BenchmarkFirstState(b *testing.B) {
	d := newDatabase(b, large...)
	for b.Loop() {
		d.open(postgres.Options{}, postgres.Table{Name: "large"})
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil && b.N == 1 {
		peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
		kilobytes, _ := strconv.ParseFloat(string(peak[1]), 64) // it matches \d+
		b.ReportMetric(kilobytes/1024, "MiB-peak")
	}
}

// BenchmarkLargeTransaction measures the time from the end of a transaction with 200,000 rows until
// it is visible, and how long watchers of another table wait for their events meanwhile, before and
// after the commit.
func BenchmarkLargeTransaction(b *testing.B) {
	small := []string{"CREATE TABLE small (id int PRIMARY KEY, n int)", "INSERT INTO small VALUES (1, 0)"}
	d := newDatabase(b, append(small, large...)...)
	db := d.open(postgres.Options{}, postgres.Table{Name: "large"}, postgres.Table{Name: "small"})
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		p := d.probe(ctx, db.Source("small"), "UPDATE small SET n = n + 1")
		d.exec("UPDATE large SET n = n + 1")
		committed := time.Now()
		d.await(func() error { // a list waits for 3 seconds
			_, err := db.Source("large").List(b.Context(), listwatch.Query{})
			return err
		})
		b.ReportMetric(time.Since(committed).Seconds(), "s-until-visible")
		cancel()
		p.running.Wait()
		at, _ := slices.BinarySearchFunc(p.delays, committed,
			func(d delay, t time.Time) int { return d.from.Compare(t) })
		p.report(b, p.delays[:at], "while-open")
		p.report(b, p.delays[at:], "after-commit")
		p.report(b, p.delays, "other-events")
	}
}

// A delay is the time from the acknowledgement of a commit to its event.
type delay struct {
	from time.Time
	took time.Duration
}

// A probe measures the delays of events.
type probe struct {
	running sync.WaitGroup
	delays  []delay // complete when running is zero
}

// probe executes a statement, which changes one object of a Source, 100 times a second until ctx
// ends.
func (d *database) probe(ctx context.Context, s listwatch.Source, statement string) *probe {
	d.Helper()
	conn, err := pgx.Connect(d.Context(), d.url)
	if err != nil {
		d.Fatal(err)
	}
	w, err := s.Watch(d.Context(), listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	if err != nil {
		d.Fatal(err)
	}
	p := new(probe)
	acknowledged := make(chan time.Time, 100_000)
	p.running.Go(func() {
		defer func() { _ = conn.Close(context.Background()) }()
		defer close(acknowledged)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if _, err := conn.Exec(d.Context(), statement); err != nil {
				d.Error(err)
				return
			}
			acknowledged <- time.Now()
			<-ticker.C
		}
	})
	p.running.Go(func() {
		defer w.Close()
		var batch [1]listwatch.Event
		for from := range acknowledged {
			if _, err := w.Next(d.Context(), batch[:]); err != nil {
				d.Error(err)
				return
			}
			p.delays = append(p.delays, delay{from, time.Since(from)})
		}
	})
	return p
}

// report reports percentiles.
func (p *probe) report(b *testing.B, delays []delay, name string) {
	b.Helper()
	if len(delays) == 0 {
		return
	}
	took := make([]time.Duration, len(delays))
	for i, d := range delays {
		took[i] = d.took
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, name+"-p99-ms")
}

// A contestant is a way to serve the table settings of examples/postgres.
type contestant struct {
	*database
	serve func(context.Context) listwatch.Source
}

const settingsTable = `CREATE TABLE settings (id bigint GENERATED ALWAYS AS IDENTITY, namespace text, name text,
	labels jsonb NOT NULL DEFAULT '{}', spec json NOT NULL, PRIMARY KEY (namespace, name))`

const settingsRows = `INSERT INTO settings (namespace, name, spec)
	SELECT 'prod', i::text, json_build_object('n', 0, 'x', repeat('x', 200)) FROM generate_series(1, 1000) i`

func newContestant(b *testing.B, statements ...string) *contestant {
	return &contestant{database: newDatabase(b, append(statements, settingsRows)...)}
}

// newLogical returns the contestant that follows the log.
func newLogical(b *testing.B) *contestant {
	c := newContestant(b, settingsTable)
	c.serve = func(ctx context.Context) listwatch.Source {
		db, err := postgres.Open(ctx, c.url, postgres.Options{}, postgres.Table{
			Name: "settings", Namespace: "namespace", LabelsFrom: "labels", Spec: "spec",
		})
		if err != nil {
			b.Fatal(err)
		}
		return db.Source("settings")
	}
	return c
}

// newTriggers returns the contestant with triggers and a table of changes.
func newTriggers(b *testing.B) *contestant {
	c := newContestant(b, settingsTable, settings.Schema)
	c.serve = func(ctx context.Context) listwatch.Source {
		pool, err := pgxpool.New(ctx, c.url)
		if err != nil {
			b.Fatal(err)
		}
		s, err := settings.New(ctx, pool, watchcache.Options{})
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			defer pool.Close()
			_ = s.Run(ctx) // until ctx ends
		}()
		return s
	}
	return c
}

// A result is what a contestant has reached.
type result struct {
	rate   float64       // transactions per second
	cpu    time.Duration // of PostgreSQL, per transaction
	delays []delay
}

const (
	contestWriters = 4
	contestWrites  = 2500 // of each writer
)

// run measures writers, and events at the first of some servers.
func (c *contestant) run(b *testing.B, servers int) (r result) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var sources []listwatch.Source
	for range servers {
		sources = append(sources, c.serve(ctx))
	}
	c.exec("CHECKPOINT")
	before, err := c.server.CPUTime()
	if err != nil {
		b.Skip(err)
	}
	begun := time.Now()
	var writing sync.WaitGroup
	for i := range contestWriters {
		writing.Go(func() { c.write(i) })
	}
	writing.Wait()
	r.rate = contestWriters * contestWrites / time.Since(begun).Seconds()
	for _, s := range sources {
		c.list(s) // all events were received
	}
	after, err := c.server.CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	r.cpu = (after - before) / (contestWriters * contestWrites)
	if servers > 0 {
		probing, stop := context.WithTimeout(b.Context(), 5*time.Second)
		defer stop()
		p := c.probe(probing, sources[0], "UPDATE settings SET spec = json_build_object('n', random()) WHERE name = '7'")
		p.running.Wait()
		r.delays = p.delays
	}
	return r
}

// write updates random rows, each in its own transaction.
func (c *contestant) write(writer int) {
	conn, err := pgx.Connect(c.Context(), c.url)
	if err != nil {
		c.Error(err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for i := range contestWrites {
		if _, err := conn.Exec(c.Context(), `UPDATE settings SET spec = json_build_object('n', $1::int, 'x', repeat('x', 200))
			WHERE namespace = 'prod' AND name = $2`, i, fmt.Sprint(1+(i*contestWriters+writer)%1000)); err != nil {
			c.Error(err)
			return
		}
	}
}

// BenchmarkBesideTriggers compares store/postgres with examples/postgres in one run. Each pair of
// runs is close in time, because the speed of a shared machine changes.
func BenchmarkBesideTriggers(b *testing.B) {
	for _, servers := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			ours, theirs := newLogical(b), newTriggers(b)
			var a, z result // sums
			n := 0
			for b.Loop() {
				n++
				a.add(ours.run(b, servers))
				z.add(theirs.run(b, servers))
			}
			b.ReportMetric(a.rate/z.rate, "rate-ratio")
			b.ReportMetric(a.rate/float64(n), "tx/s")
			b.ReportMetric(float64(a.cpu)/float64(z.cpu), "cpu-ratio")
			b.ReportMetric(float64(a.cpu.Microseconds())/float64(n), "µs-cpu/tx")
			if servers > 0 {
				new(probe).report(b, a.delays, "events")
				new(probe).report(b, z.delays, "trigger-events")
			}
		})
	}
}

func (r *result) add(o result) {
	r.rate += o.rate
	r.cpu += o.cpu
	r.delays = append(r.delays, o.delays...)
}
