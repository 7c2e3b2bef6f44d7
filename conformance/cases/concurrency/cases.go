// Package concurrency has the cases about many watches and writers, and about the order of events.
package concurrency

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases are those of many at once.
var Cases = []harness.Case{
	{
		ID: "conc/1000-watchers", Level: harness.Must, Subject: harness.Both, Transports: "h2", Mode: "r",
		Rule:  "a thousand watchers, over all transports at once, see each of a hundred writes exactly",
		Needs: harness.Writes | harness.SoleWriter, Run: thousandWatchers,
	},
	{
		ID: "conc/subscribe-race", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "watchers that begin among writes see exactly what follows their beginning (Kubernetes, test/e2e/apimachinery/watch.go)",
		Needs: harness.Writes | harness.SoleWriter, Run: subscribeRace,
	},
	{
		ID: "conc/h2-one-conn", Level: harness.Promise, Subject: harness.Server, Transports: "h2", Mode: "f",
		Rule:  "the watches of one HTTP/2 connection share it fairly (RFC 9113, section 5.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2OneConn,
	},
	{
		ID: "conc/close-during-send", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "watches may be closed at any instant, whether somebody reads them or not, and others are as before",
		Needs: harness.Writes | harness.SoleWriter, Run: closeDuringSend,
	},
	{
		ID: "conc/stop-idempotent", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a watch may be closed twice, before it is read, while it is read and by many, and then it is over",
		Needs: harness.Writes | harness.SoleWriter, Run: stopIdempotent,
	},
	{
		ID: "conc/head-of-line", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a large event that a client does not read holds no other client's events back",
		Setup: harness.Setup{SmallBuffers: true},
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Run: headOfLine,
	},
}
