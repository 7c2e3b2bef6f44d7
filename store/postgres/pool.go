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
	idle   chan session // a session without a connection is opened before its next use
}

func newPool(config *pgconn.Config, n int) *pool {
	p := &pool{config: config, idle: make(chan session, n)}
	for range n {
		p.idle <- session{}
	}
	return p
}

var errEnded = errors.New("the tables are not followed any more")

// with calls f with a connection that is open.
func (p *pool) with(ctx context.Context, f func(session) error) (err error) {
	var s session
	var ok bool
	select {
	case s, ok = <-p.idle:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !ok {
		return errEnded
	}
	defer func() { p.idle <- s }()
	if s.PgConn == nil || s.IsClosed() {
		if s, err = connect(ctx, p.config, false); err != nil {
			s = session{}
			return err
		}
	}
	return f(s)
}

// close waits for the calls of with, and closes the connections. Later calls of with fail.
func (p *pool) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for range cap(p.idle) {
		if s := <-p.idle; s.PgConn != nil {
			_ = s.Close(ctx) // no transaction is open
		}
	}
	close(p.idle)
}
