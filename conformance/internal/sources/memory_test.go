package sources

import (
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMemoryStoreIsASource(t *testing.T) {
	except := conformance.Exceptions{}
	if harness.RaceEnabled && !*all {
		for _, c := range conformance.List() {
			except[c.ID] = "slow; the package cases runs it over this store"
		}
	}
	conformance.TestSource(t, func(_ conformance.T, historyBytes int64) conformance.Database {
		return memory.Open(memory.Options{HistoryBytes: historyBytes})
	}, except)
}
