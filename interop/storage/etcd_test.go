package storage

import (
	"testing"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store/etcd"
)

// inEtcd is a database each of whose collections has a watch of its own.
type inEtcd struct{ *etcd.DB }

func (inEtcd) lags() {}

// openEtcd opens a database in an etcd of its own, since runners count revisions.
func openEtcd(t testing.TB) database {
	t.Helper()
	server := etcdtest.Start(t, nil)
	db, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return inEtcd{db}
}

func TestEtcd(t *testing.T) { suite(t, openEtcd) }
