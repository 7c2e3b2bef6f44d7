//go:build unix

package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
)

const (
	sessions        = 4
	keys            = 20
	commitsPerFault = 60
	// endTimeout limits the time that a watcher has to receive the last change. Only failing tests
	// wait that long.
	endTimeout = 5 * time.Minute
)

// Writers change the table in several sessions while the connections of the program are ended, the
// program is killed and PostgreSQL restarts. Watchers of the program must receive each change
// exactly once, in the order of the versions, without listing again.
func TestWatchersMissNothingUnderFaults(t *testing.T) {
	server := pgtest.Start(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, server.URL()+"&application_name=program")
	selector := listwatch.LabelSelector{}
	if selector, err = listwatch.ParseLabelSelector("color=red"); err != nil {
		t.Fatal(err)
	}
	watchers := []*watcher{
		startWatcher(t, p.url, listwatch.LabelSelector{}), startWatcher(t, p.url, selector),
		startWatcher(t, p.url, selector),
	}

	load := startWriters(t, pool)
	for range 2 {
		for _, fault := range []func(){
			func() { endSessions(t, pool) },
			func() { p.kill(); p.start() },
			func() { server.Kill(); server.Restart() },
			func() { p.kill(); load.await(commitsPerFault); p.start() },
			func() { server.Stop(); server.Restart() },
		} {
			load.await(commitsPerFault)
			fault()
		}
	}
	load.await(commitsPerFault)
	load.stop()

	if n := countReordered(t, pool); n == 0 {
		t.Error(
			"all transactions committed in the order in which they started, so the test shows nothing about their order")
	}
	if _, err := (writer{pool}).write(t.Context(), lastKey,
		[]byte(`{"metadata":{"labels":{"color":"red"}}}`)); err != nil {
		t.Fatal(err)
	}
	changes := readChanges(t, pool)
	t.Logf("%d changes, %d of them after one of a transaction that started later", len(changes),
		countReordered(t, pool))
	for _, w := range watchers {
		w.want(changes)
	}
}

// endSessions ends all sessions of the program. If the program has no session, as after a fault,
// endSessions first waits for one.
func endSessions(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for ended, begin := 0, time.Now(); ended == 0; {
		err := pool.QueryRow(t.Context(),
			`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'program'`).Scan(
			&ended)
		if err != nil || time.Since(begin) > endTimeout {
			t.Fatalf("ended %d sessions of the program: %v", ended, err)
		}
	}
}

// countReordered counts the changes whose transaction started before the transaction of the change
// with the previous version.
func countReordered(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM (
		SELECT xmin::text::bigint AS started, lag(xmin::text::bigint) OVER (ORDER BY version) AS previous FROM setting_changes
		) changes WHERE started < previous`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A tableChange is a row of the table of changes.
type tableChange struct {
	version listwatch.Version
	name    string
	// color is the label of the object before and after the change, or empty if there was none.
	before, after string
}

func readChanges(t *testing.T, pool *pgxpool.Pool) []tableChange {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `SELECT version, name, coalesce(before #>> '{metadata,labels,color}', ''), coalesce(after #>> '{metadata,labels,color}', '')
		FROM setting_changes WHERE version > 1 ORDER BY version`)
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c tableChange, err error) {
		return c, row.Scan(&c.version, &c.name, &c.before, &c.after)
	})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// A load runs the writers and counts the transactions that they have committed.
type load struct {
	cancel  context.CancelFunc
	writers sync.WaitGroup

	mu        sync.Mutex
	committed sync.Cond
	commits   int // guarded by mu
}

// startWriters starts the writers, each with its own session. They run until stop is called.
func startWriters(t *testing.T, pool *pgxpool.Pool) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	l.committed.L = &l.mu
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(sessions) {
		random := rand.New(rand.NewPCG(seed, i))
		l.writers.Go(func() {
			for ctx.Err() == nil {
				// A transaction fails while PostgreSQL restarts. Whether it was committed does not
				// matter: the table of changes shows what happened.
				if err := writeRandomly(ctx, pool, random); err == nil {
					l.mu.Lock()
					l.commits++
					l.committed.Broadcast()
					l.mu.Unlock()
				}
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

// writeRandomly changes up to three objects in one transaction, which commits after a random time.
func writeRandomly(ctx context.Context, pool *pgxpool.Pool, random *rand.Rand) error {
	names := make([]string, 1+random.IntN(3))
	for i := range names {
		names[i] = fmt.Sprintf("key-%02d", random.IntN(keys))
	}
	slices.Sort(names) // so that transactions do not deadlock
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, name := range names {
			var data []byte
			if random.IntN(4) > 0 {
				color := []string{"red", "blue"}[random.IntN(2)]
				data = fmt.Appendf(nil, `{"metadata":{"labels":{"color":%q}},"spec":{"n":%d}}`, color, random.Int())
			}
			if err := put(ctx, tx, listwatch.Key{Namespace: "default", Name: name}, data); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `SELECT pg_sleep($1)`, 0.005*random.Float64())
		if err == nil && random.IntN(8) == 0 {
			err = pgx.ErrTxCommitRollback
		}
		return err
	})
}

// await returns after n more commits.
func (l *load) await(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for until := l.commits + n; l.commits < until; {
		l.committed.Wait()
	}
}

func (l *load) stop() {
	l.cancel()
	l.writers.Wait()
}

// lastKey is the key of the last object that is written. Every watcher selects it.
var lastKey = listwatch.Key{Namespace: "default", Name: "last"}

// A watcher records the events of a watch over HTTP until it receives the last object.
type watcher struct {
	*testing.T
	selector listwatch.LabelSelector
	done     chan struct{} // closed when the recording ends
	// Immutable once done is closed.
	got []string
	err error
}

func startWatcher(t *testing.T, url string, selector listwatch.LabelSelector) *watcher {
	t.Helper()
	remote := &client.Remote{URL: url}
	w, err := remote.Watch(t.Context(), listwatch.Query{
		Start: listwatch.StartAt, Version: 1, Selection: listwatch.Selection{Labels: selector},
	})
	if err != nil {
		t.Fatal(err)
	}
	recorder := &watcher{T: t, selector: selector, done: make(chan struct{})}
	go recorder.record(w) // ends when w is closed
	t.Cleanup(func() {
		w.Close()
		remote.Close()
		<-recorder.done
	})
	return recorder
}

func (w *watcher) record(events listwatch.Watcher) {
	defer close(w.done)
	for e, err := range listwatch.All(context.Background(), events) {
		if w.err = err; err != nil {
			return
		}
		if w.got = append(w.got,
			fmt.Sprintf("%d %s %s", e.Version, e.Type, e.Object.Key.Name)); e.Object.Key == lastKey {
			return
		}
	}
}

// want waits for the last object. It compares the received events with the events that the given
// changes of the table must cause.
func (w *watcher) want(changes []tableChange) {
	w.Helper()
	select {
	case <-w.done:
	case <-time.After(endTimeout):
		w.Errorf("watch of %q: the last object has not been received", w.selector)
		return
	}
	if w.err != nil {
		w.Errorf("watch of %q: it ended after %d events: %v", w.selector, len(w.got), w.err)
		return
	}
	got := w.got
	var want []string
	for _, c := range changes {
		before, after := w.selects(c.before), w.selects(c.after)
		switch {
		case before && after:
			want = append(want, fmt.Sprintf("%d MODIFIED %s", c.version, c.name))
		case after:
			want = append(want, fmt.Sprintf("%d ADDED %s", c.version, c.name))
		case before:
			want = append(want, fmt.Sprintf("%d DELETED %s", c.version, c.name))
		}
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			w.Errorf("watch of %q: event %d of %d:\n got %q\nwant %q", w.selector, i, len(want),
				got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
			return
		}
	}
}

// selects reports whether the watch selects an object of the given color, which is empty if there
// is no object.
func (w *watcher) selects(color string) bool {
	return color != "" && w.selector.Matches(map[string]string{"color": color})
}
