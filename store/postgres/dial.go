package postgres

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// unreachableAfter is the time without a sign of the other host after which a connection is lost.
// It also limits the time of opening one, unless the DSN has a connect_timeout. PostgreSQL may take
// longer for a response, but its host acknowledges packets at once.
const unreachableAfter = 30 * time.Second

// watchful returns dial with connections that fail if the other host has been unreachable for a
// time. Otherwise a network that drops packets delays a load for as long as TCP repeats its own,
// which is 15 minutes.
func watchful(dial pgconn.DialFunc, limit time.Duration) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			// If the system does not support an option, it has a limit of its own.
			_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
				Enable: true, Idle: limit / 2, Interval: limit / 6, Count: 3,
			})
			_ = setUserTimeout(tcp, limit)
		}
		return conn, err
	}
}
