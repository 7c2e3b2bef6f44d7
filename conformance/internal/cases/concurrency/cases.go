// Package concurrency has the cases about concurrent watches and writes, and about the order of
// events.
package concurrency

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about concurrent watches and writes.
var Cases = []harness.Case{
	{
		ID: "conc/1000-watchers", Level: harness.Must, Subject: harness.Both, Transports: "h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "a thousand watchers over all transports see each of fifty writes exactly once",
		Needs: harness.Writes | harness.SoleWriter, Run: thousandWatchers,
	},
	{
		ID: "conc/subscribe-race", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "watchers that start during writes see exactly the events after their start " +
			"(Kubernetes, test/e2e/apimachinery/watch.go)",
		Needs: harness.Writes | harness.SoleWriter, Run: subscribeRace,
	},
	{
		ID: "conc/h2-one-conn", Level: harness.Promise, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.FakeTime},
		Rule:  "watches on one HTTP/2 connection share it fairly (RFC 9113, section 5.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2OneConn,
	},
	{
		ID: "conc/close-during-send", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch may be closed at any moment, whether its client reads or not, without " +
			"effect on others",
		Needs: harness.Writes | harness.SoleWriter, Run: closeDuringSend,
	},
	{
		ID: "conc/stop-idempotent", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a watch may be closed twice, before and during a read, and from several " +
			"goroutines; every later read returns the end of the watch",
		Needs: harness.Writes | harness.SoleWriter, Run: stopIdempotent,
	},
	{
		ID: "conc/head-of-line", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a large event that its client does not read delays no other client",
		Setup: harness.Setup{SmallBuffers: true},
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Run: headOfLine,
	},
}
