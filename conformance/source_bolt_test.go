package conformance_test

import (
	"path/filepath"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/store/bolt"
)

func TestTheStoreInAFileIsASource(t *testing.T) {
	t.Parallel() // for it waits for the disk
	conformance.TestSource(t, func(ct conformance.T, historyBytes int64) conformance.Database {
		db, err := bolt.Open(filepath.Join(t.TempDir(), "test.db"), bolt.Options{HistoryBytes: historyBytes})
		if err != nil {
			ct.Fatal(err)
		}
		ct.Cleanup(func() {
			if err := db.Close(); err != nil {
				ct.Error(err)
			}
		})
		return db
	})
}
