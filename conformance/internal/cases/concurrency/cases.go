// Package concurrency has the cases about concurrent watches and writes, and about the order of
// events.
package concurrency

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about concurrent watches and writes.
var Cases = []harness.Case{
	harness.Rule("conc/1000-watchers", "a thousand watchers over all transports see each of fifty writes exactly once",
		harness.Case{Subject: harness.Both, Transports: "h2", Needs: harness.OwnCollection, Run: thousandWatchers}),
	harness.Rule("conc/subscribe-race",
		"watchers that start during writes see exactly the events after their start (Kubernetes, "+
			"test/e2e/apimachinery/watch.go)",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: subscribeRace}),
	harness.Rule("conc/h2-one-conn", "watches on one HTTP/2 connection share it fairly (RFC 9113, section 5.2)",
		harness.Case{
			Strength: harness.Promise, Transports: "h2", Mode: harness.FakeTime, Needs: harness.OwnCollection,
			Run: h2OneConn,
		}),
	harness.Rule("conc/close-during-send",
		"a watch may be closed at any moment, whether its client reads or not, without effect on others",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: closeDuringSend}),
	harness.Rule("conc/stop-idempotent",
		"a watch may be closed twice, before and during a read, and from several goroutines; every later read returns "+
			"the end of the watch", harness.Case{
			Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: stopIdempotent,
		}),
	harness.Rule("conc/head-of-line", "a large event that its client does not read delays no other client",
		harness.Case{
			Strength: harness.Promise, Needs: harness.OwnCollection | harness.Configurable,
			Setup: harness.Setup{SmallBuffers: true}, Run: headOfLine,
		}),
}
