package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store/etcd"
)

var prefixes atomic.Int64

// testingT is implemented by *testing.T and by conformance.T.
type testingT interface {
	Context() context.Context
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// openDB opens a database, and closes it at the end of the test. By default it has a new prefix,
// and a timeout that only a failing test reaches.
func openDB(t testingT, o etcd.Options) *etcd.DB {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = fmt.Sprintf("/test-%d", prefixes.Add(1))
	}
	if o.Timeout == 0 {
		o.Timeout = waitTimeout
	}
	db, err := etcd.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return db
}

func TestSource(t *testing.T) {
	server := etcdtest.StartProcess(t)
	conformance.TestSource(t, func(t conformance.T, historyBytes int64) conformance.Database {
		return openDB(t, etcd.Options{
			Endpoints: []string{server.URL},
			History:   listwatch.Retention{Bytes: historyBytes}, HistoryRevisions: -1,
		})
	}, conformance.Exceptions{
		"resume/server-restart": "the case expects that a restart loses the history, but etcd keeps it",
		"slow/bounded-memory":   "gRPC's buffers use most of the allowed 2.5 MiB; see TestStalledReadersUseNoExtraMemory",
	})
}
