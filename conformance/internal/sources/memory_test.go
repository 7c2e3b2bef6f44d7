package sources

import (
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMemoryStoreIsASource(t *testing.T) {
	conformance.TestSource(t, func(_ conformance.T, historyBytes int64) conformance.Database {
		return memory.Open(memory.Options{HistoryBytes: historyBytes})
	})
}
