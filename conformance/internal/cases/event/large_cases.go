package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// LargeCases check large objects and large numbers of objects.
var LargeCases = []harness.Case{
	harness.Rule("large/1MiB",
		"an object of 1 MiB arrives intact in every framing, across frames and windows (RFC 9113, section 4.2)",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: large1MiB}),
	harness.Rule("large/3MiB",
		"an object of 3 MiB arrives intact in every framing, across frames and windows (RFC 9113, section 4.2)",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: large3MiB}),
	harness.Rule("large/burst", "200 consecutive objects of 100 KiB arrive as written",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: largeBurst}),
	harness.Rule("large/initial-50k",
		"initial events of 50,000 objects need no copy of the state per watch, on any transport (KEP-3157)",
		harness.Case{
			Strength: harness.Promise, Transports: "h2", RunsAlone: true,
			Needs: harness.OwnCollection | harness.Configurable | harness.InProcess,
			Setup: harness.Setup{SmallBuffers: true}, Run: largeInitial50k,
		}),
}
