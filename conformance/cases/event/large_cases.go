package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// LargeCases are those of large objects and of many.
var LargeCases = []harness.Case{
	{
		ID: "large/1MiB", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "an object of 1 MiB is carried whole in every framing, whatever frames and windows it crosses (RFC 9113, section 4.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: large1MiB,
	},
	{
		ID: "large/3MiB", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "an object of 3 MiB is carried whole in every framing, whatever frames and windows it crosses (RFC 9113, section 4.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: large3MiB,
	},
	{
		ID: "large/burst", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "200 objects of 100 KiB in a row arrive as they were written",
		Needs: harness.Writes | harness.SoleWriter, Run: largeBurst,
	},
	{
		ID: "large/initial-50k", Level: harness.Promise, Subject: harness.Server, Transports: "h2", Mode: "r",
		Rule:  "initial events of 50,000 objects cost the server no copy of the state for each watch, on any transport (KEP-3157)",
		Setup: harness.Setup{SmallBuffers: true},
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable | harness.InProcess, Run: largeInitial50k, RunsAlone: true,
	},
}
