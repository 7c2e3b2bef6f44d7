package postgres

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/listwatch/listwatch/watchcache"
)

// A connection to a server that has vanished is lost, although the network reports no error. A
// server that only answers the confirmations is still there.
func TestSilentConnectionIsLost(t *testing.T) {
	for name, answers := range map[string]bool{"silent": false, "idle": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &follower{
					DB:      &DB{options: Options{SchemaInterval: -1}.withDefaults(), group: new(watchcache.Group)},
					session: dialStream(t, answers),
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err := f.follow(ctx)
				if lost := errors.Is(err, errSilent); lost == answers {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if took := time.Since(began); !answers && took > 2*streamTimeout {
					t.Errorf("the connection was lost after %v", took)
				}
			})
		})
	}
}

// dialStream returns a session whose server starts a stream without changes. If answers is true, it
// answers each confirmation.
func dialStream(t *testing.T, answers bool) session {
	ours, theirs := net.Pipe()
	config, err := pgconn.ParseConfig("postgres://test@server/test?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil }
	go serveStream(pgproto3.NewBackend(theirs, theirs), answers)
	t.Cleanup(func() { _ = theirs.Close() }) // ends serveStream
	s, err := connect(t.Context(), config, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Conn().Close() }) // without a last message, which nobody reads
	return s
}

func serveStream(server *pgproto3.Backend, answers bool) {
	if _, err := server.ReceiveStartupMessage(); err != nil {
		return
	}
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: outsideTransaction})
	for server.Flush() == nil {
		message, err := server.Receive()
		if err != nil {
			return
		}
		switch m := message.(type) {
		case *pgproto3.Query:
			server.Send(&pgproto3.CopyBothResponse{})
		case *pgproto3.CopyData:
			if wantsReply := m.Data[len(m.Data)-1] == 1; answers && wantsReply {
				server.Send(&pgproto3.CopyData{Data: append([]byte("k"), make([]byte, 8+8+1)...)})
			}
		}
	}
}
