package storage

import (
	"path/filepath"
	"testing"

	"github.com/listwatch/listwatch/store/bolt"
)

func openBolt(t testing.TB) database {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "test.db"), bolt.Options{StartVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestBolt(t *testing.T) { runSuite(t, openBolt) }
