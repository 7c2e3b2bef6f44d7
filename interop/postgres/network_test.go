//go:build unix

package postgres

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/watchcache"
)

// A network makes the connections of a Source slow, or makes them swallow what PostgreSQL sends.
type network struct {
	bytesPerRead int // one read takes about 10 ms

	mu    sync.Mutex
	conns []*netConn
}

// dialTo makes the pool connect through n.
func (n *network) dialTo(config *pgxpool.Config) {
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = pgconn.DialFunc(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &netConn{Conn: conn, bytesPerRead: n.bytesPerRead, swallows: make(chan struct{})}
		n.mu.Lock()
		n.conns = append(n.conns, c)
		n.mu.Unlock()
		return c, nil
	})
}

// swallow makes the existing connections swallow what they receive. New ones work.
func (n *network) swallow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		close(c.swallows)
	}
	n.conns = nil
}

type netConn struct {
	net.Conn
	bytesPerRead int
	swallows     chan struct{} // closed when the connection swallows data
}

func (c *netConn) Read(p []byte) (int, error) {
	if c.bytesPerRead > 0 {
		p = p[:min(len(p), c.bytesPerRead)]
		<-time.After(10 * time.Millisecond)
	}
	for {
		n, err := c.Conn.Read(p)
		select {
		case <-c.swallows:
			if err == nil {
				continue
			}
		default:
		}
		return n, err
	}
}

// newTableThrough is like newTable, with a Source that connects through n.
func newTableThrough(t *testing.T, n *network, schema string) (*pgxpool.Pool, *settings.Source) {
	t.Helper()
	pool := newTable(t, pgtest.Start(t), schema)
	config := pool.Config()
	n.dialTo(config)
	through, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(through.Close)
	s, err := settings.New(t.Context(), through, watchcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return pool, s
}

// A state and a backlog may take longer than any limit, as long as rows keep arriving.
func TestSlowConnectionsDeliverLargeStates(t *testing.T) {
	const fill = `; INSERT INTO settings (namespace, name, spec) SELECT 'n', 'old-' || n, to_json(repeat('x', 1000)) FROM generate_series(1, 500) n;`
	n := &network{bytesPerRead: 4 << 10} // the state takes about 2 seconds
	pool, s := newTableThrough(t, n, fill+settings.Schema)
	s.RowTimeout = time.Second
	run(t, s)
	begin := time.Now()
	awaitNewest(t, pool, s)
	if took := time.Since(begin); took < s.RowTimeout {
		t.Errorf("the state took %v: it must take longer than the limit, %v", took, s.RowTimeout)
	}
	wantTable(t, pool, s)
	// The backlog has several portions.
	execute(t, pool, `UPDATE settings SET spec = '1'`, `UPDATE settings SET spec = '2'`,
		`UPDATE settings SET spec = '3'`)
	awaitNewest(t, pool, s)
	wantTable(t, pool, s)
}

// Firewalls and load balancers forget connections without a message to either side.
func TestLostConnectionsAreReplacedSoon(t *testing.T) {
	n := &network{}
	pool, s := newTableThrough(t, n, settings.Schema)
	run(t, s)
	awaitNewest(t, pool, s)
	n.swallow()
	begin := time.Now()
	execute(t, pool, `UPDATE settings SET spec = '1'`)
	if page, err := s.List(t.Context(), listwatch.Query{}); err == nil && page.Version != 2 {
		t.Errorf("listed version %d, want 2 or an error", page.Version)
	}
	awaitNewest(t, pool, s)
	// The next poll comes after 5 seconds, and fails 5 seconds later.
	if took := time.Since(begin); took > 40*time.Second {
		t.Errorf("the change arrived after %v, want about 10 s", took)
	}
	if page, err := s.List(t.Context(), listwatch.Query{}); err != nil || page.Version != 2 {
		t.Errorf("listed version %d, %v, want 2: the pool must have a new connection", page.Version, err)
	}
}

// A connection that is lost in the middle of the state must not block the feed.
func TestLostConnectionsDoNotBlockTheFirstState(t *testing.T) {
	const fill = `; INSERT INTO settings (namespace, name, spec) SELECT 'n', 'old-' || n, to_json(repeat('x', 1000)) FROM generate_series(1, 500) n;`
	n := &network{bytesPerRead: 4 << 10}
	pool, s := newTableThrough(t, n, fill+settings.Schema)
	s.RowTimeout = time.Second
	run(t, s)
	lost := time.AfterFunc(500*time.Millisecond, n.swallow) // the state takes about 2 seconds
	defer lost.Stop()
	awaitNewest(t, pool, s)
	wantTable(t, pool, s)
}
