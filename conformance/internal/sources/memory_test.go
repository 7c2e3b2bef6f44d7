package sources

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMemoryStoreIsASource(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; the package cases runs the same over this store")
	}
	except := conformance.Exceptions{}
	if racetest.Enabled && !*all {
		for _, c := range conformance.List() {
			except[c.ID] = "slow; the package cases runs it over this store"
		}
	}
	conformance.TestSource(t, func(_ conformance.T, historyBytes int64) conformance.Database {
		return memory.Open(memory.Options{History: listwatch.Retention{Bytes: historyBytes}})
	}, except)
}
