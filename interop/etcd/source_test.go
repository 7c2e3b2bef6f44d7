package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store/etcd"
)

var prefixes atomic.Int64

// T is what both *testing.T and the cases of conformance are.
type T interface {
	Context() context.Context
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// open opens a database below a prefix of its own, which ends with the test.
func open(t T, o etcd.Options) *etcd.DB {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = fmt.Sprintf("/test-%d", prefixes.Add(1))
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
		return open(t, etcd.Options{Endpoints: []string{server.URL}, HistoryBytes: historyBytes, HistoryRevisions: -1})
	}, conformance.Exceptions{
		"resume/server-restart": "a store in memory forgets when it starts again; this one does not, and its versions are those of etcd",
		"slow/bounded-memory":   "it allows 2.5 MiB, of which gRPC's buffers take most: see TestReadersThatStalledHoldNoMoreThanTheWindow",
	})
}
