package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A pool is a fixed number of connections, which are opened when they are needed. It is safe for
// concurrent use.
type pool struct {
	config *pgconn.Config
	idle   chan pooled
}

// A pooled is a connection of a pool. Its zero value is opened before its next use.
type pooled struct {
	session
	used time.Time // when a call of pool.with ended
}

func newPool(config *pgconn.Config, n int) *pool {
	p := &pool{config: config, idle: make(chan pooled, n)}
	for range n {
		p.idle <- pooled{}
	}
	return p
}

var errEnded = errors.New("the tables are not followed any more")

// with calls f with a connection that is open.
func (p *pool) with(ctx context.Context, f func(session) error) (err error) {
	var c pooled
	var ok bool
	select {
	case c, ok = <-p.idle:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !ok {
		return errEnded
	}
	defer func() { p.idle <- c.release() }()
	if !c.isAlive(ctx) {
		if c.session, err = connect(ctx, p.config, false); err != nil {
			return err
		}
	}
	return f(c.session)
}

// row returns the only row of a query.
func (p *pool) row(ctx context.Context, query string) (row []string, err error) {
	err = p.with(ctx, func(s session) (err error) {
		row, err = s.row(ctx, "%s", query)
		return err
	})
	return row, err
}

// unchecked is the time for which an idle connection is taken to be open.
const unchecked = time.Second

// isAlive reports whether p is open. PostgreSQL may have closed it while it was idle.
func (p pooled) isAlive(ctx context.Context) bool {
	return p.PgConn != nil && !p.IsClosed() && (time.Since(p.used) < unchecked || p.Ping(ctx) == nil)
}

// The status of a connection. After an error in a transaction, it is neither.
const (
	outsideTransaction = 'I'
	inTransaction      = 'T'
)

// release returns p for its next use. A connection with an open transaction, as after a panic, is
// closed.
func (p pooled) release() pooled {
	p.used = time.Now()
	if p.PgConn == nil || p.TxStatus() == outsideTransaction && !p.IsBusy() {
		return p
	}
	closing, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.Close(closing)
	return pooled{}
}

// close waits for the calls of with, and closes the connections. Later calls of with fail.
func (p *pool) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for range cap(p.idle) {
		if c := <-p.idle; c.PgConn != nil {
			_ = c.Close(ctx) // no transaction is open
		}
	}
	close(p.idle)
}
