package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// LargeCases check large objects and large numbers of objects.
var LargeCases = []harness.Case{
	{
		ID: "large/1MiB", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an object of 1 MiB arrives intact in every framing, across frames and windows " +
			"(RFC 9113, section 4.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: large1MiB,
	},
	{
		ID: "large/3MiB", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an object of 3 MiB arrives intact in every framing, across frames and windows " +
			"(RFC 9113, section 4.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: large3MiB,
	},
	{
		ID: "large/burst", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "200 consecutive objects of 100 KiB arrive as written",
		Needs: harness.Writes | harness.SoleWriter, Run: largeBurst,
	},
	{
		ID: "large/initial-50k", Level: harness.Promise, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "initial events of 50,000 objects need no copy of the state per watch, on any " +
			"transport (KEP-3157)",
		Setup: harness.Setup{SmallBuffers: true},
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable | harness.InProcess, Run: largeInitial50k, RunsAlone: true,
	},
}
