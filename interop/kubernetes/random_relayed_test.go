//go:build !race

package kubernetes

import (
	"flag"
	"testing"
)

var compareRelayed = flag.Bool("compare-relayed", false, "send random requests to a relay of a cluster, too")

// relayedSequences is the number of sequences that are sent to a relay by default.
const relayedSequences = "60"

// TestRelayedRequestsAreAnsweredAsDirectOnes sends the same requests to an API server and, through
// a relay of the cluster, to another API server. There are no exceptions. It runs on request only,
// because it takes five minutes: a relay waits for a bookmark before many of its reads.
func TestRelayedRequestsAreAnsweredAsDirectOnes(t *testing.T) {
	if !*compareRelayed {
		t.Skip("runs with -compare-relayed")
	}
	newComparison(startKubernetes(t), startRelayed(t), nil).check(t, relayedSequences)
}
