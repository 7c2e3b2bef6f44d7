package sources

import (
	"flag"
	"slices"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/leaktest"
)

var all = flag.Bool("all", false, "run every case over every source under the race detector, too")

func TestMain(m *testing.M) { leaktest.Main(m) }

// withoutWireCases returns the cases that a Source without an encoding of its own cannot fail:
// those about requests, connections, and the encoding and size of events. Such a Source passes
// objects on as it got them. The package cases runs these cases over the memory store, and
// TestBoltStoreIsASource over a store that encodes objects.
func withoutWireCases() conformance.Exceptions {
	except := conformance.Exceptions{}
	if !harness.RaceEnabled || *all {
		return except
	}
	for _, c := range conformance.List() {
		// A Source may also cause events to be encoded more than once.
		if slices.Contains([]string{"framing", "comp", "large", "limit", "auth", "tls", "cors"}, c.Group()) && c.ID != "comp/shared-once" {
			except[c.ID] = "slow; the package cases runs it, and it does not depend on the Source"
		}
	}
	return except
}
