package sources

import (
	"flag"
	"slices"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/racetest"
)

var all = flag.Bool("all", false, "run every case over every source under the race detector, too")

func TestMain(m *testing.M) { leaktest.Main(m) }

// withoutWireCases returns the cases to skip for a Source that does not encode objects. Such a
// Source cannot fail the cases about requests, connections, and the encoding and size of events.
// Package cases runs these cases over the memory store, and TestBoltStoreIsASource runs them over a
// store that encodes objects. Without the race detector, or with the flag -all, withoutWireCases
// returns no cases.
func withoutWireCases() conformance.Exceptions {
	except := conformance.Exceptions{}
	if !racetest.Enabled || *all {
		return except
	}
	for _, c := range conformance.List() {
		// Keep comp/shared-once, because a Source can cause events to be encoded more than once.
		if slices.Contains([]string{"framing", "comp", "large", "limit", "auth", "tls", "cors"}, c.Group()) &&
			c.ID != "comp/shared-once" {
			except[c.ID] = "slow; the package cases runs it, and it does not depend on the Source"
		}
	}
	return except
}
