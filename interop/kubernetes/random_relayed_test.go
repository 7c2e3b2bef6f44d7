//go:build !race

package kubernetes

import "testing"

// relayedSequencesInCI is the number of sequences that are sent to a relay in continuous
// integration.
const relayedSequencesInCI = "60"

// TestRelayedRequestsAreAnsweredAsDirectOnes sends the same requests to an API server and, through
// a relay of the cluster, to another API server. There are no exceptions.
func TestRelayedRequestsAreAnsweredAsDirectOnes(t *testing.T) {
	newComparison(startKubernetes(t), startRelayed(t), nil).check(t, relayedSequencesInCI)
}
