package sources

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/store/bolt"
)

func TestBoltStoreIsASource(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	dir := memoryDir(t)
	conformance.TestSource(t, func(ct conformance.T, historyBytes int64) conformance.Database {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			ct.Fatal(err)
		}
		db, err := bolt.Open(filepath.Join(sub, "test.db"),
			bolt.Options{History: listwatch.Retention{Bytes: historyBytes}})
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

// memoryDir returns a directory in memory if the system has one. A disk would be slow, because the
// cases make tens of thousands of writes, and other tests cover the behavior on a disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "listwatch-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
