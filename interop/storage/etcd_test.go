package storage

import (
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store/etcd"
)

// An etcdDatabase is a laggingDatabase, because it uses a separate watch of etcd for each
// collection.
type etcdDatabase struct{ *etcd.DB }

func (etcdDatabase) lags() {}

// openEtcd opens a database in a new etcd, because the tests depend on exact revisions.
func openEtcd(t testing.TB) database {
	t.Helper()
	server := etcdtest.Start(t, nil)
	// Only a failing test reaches the timeout.
	db, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{server.URL}, Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return etcdDatabase{db}
}

func TestEtcd(t *testing.T) { runSuite(t, openEtcd) }
