// Package concurrency has the cases about concurrent watches and writes, and about the order of
// events.
package concurrency

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about concurrent watches and writes.
var Cases = []harness.Case{
	{
		ID: "conc/1000-watchers", Subject: harness.Both, Transports: "h2", Needs: harness.OwnCollection,
		Run:  thousandWatchers,
		Rule: "a thousand watchers over all transports see each of fifty writes exactly once",
	},
	{
		ID: "conc/subscribe-race", Subject: harness.Both, Needs: harness.OwnCollection, Run: subscribeRace,
		Rule: "watchers that start during writes see exactly the events after their start (Kubernetes, " +
			"test/e2e/apimachinery/watch.go)",
	},
	{
		ID: "conc/h2-one-conn", Level: harness.Promise, Transports: "h2", Mode: harness.FakeTime,
		Needs: harness.OwnCollection, Run: h2OneConn,
		Rule: "watches on one HTTP/2 connection share it fairly (RFC 9113, section 5.2)",
	},
	{
		ID: "conc/close-during-send", Subject: harness.Both, Needs: harness.OwnCollection, Run: closeDuringSend,
		Rule: "a watch may be closed at any moment, whether its client reads or not, without effect on others",
	},
	{
		ID: "conc/stop-idempotent", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.OwnCollection,
		Run: stopIdempotent,
		Rule: "a watch may be closed twice, before and during a read, and from several goroutines; every later read " +
			"returns the end of the watch",
	},
	{
		ID: "conc/head-of-line", Level: harness.Promise, Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.Setup{SmallBuffers: true}, Run: headOfLine,
		Rule: "a large event that its client does not read delays no other client",
	},
}
