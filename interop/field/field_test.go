//go:build !race

package field

import (
	"testing"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
)

// TestRelayAnswersAsKubeAPIServer compares the responses of a kube-apiserver with those of a relay
// with the default flags.
func TestRelayAnswersAsKubeAPIServer(t *testing.T) {
	c := startCluster(t, func(t testing.TB) string { return etcdtest.Start(t, nil).URL })
	c.testRequests(t)
	t.Run("RefusedWrites", c.testRefusedWrites)
	t.Run("Accept", c.testAccept)
	t.Run("Warnings", c.testWarnings)
	t.Run("Protobuf", c.testProtobuf)
	t.Run("Restarts", c.testRestarts)
}

// TestRelayAnswersOverOldEtcd makes the same comparison with an etcd that is too old to report its
// progress, so the caches of a kube-apiserver do not advance while their resources are quiet.
func TestRelayAnswersOverOldEtcd(t *testing.T) {
	startCluster(t, etcdtest.StartInstalled).testRequests(t)
}

// testRequests compares requests of every kind.
func (c *cluster) testRequests(t *testing.T) {
	c.populate(t)
	t.Run("TypedClients", c.testTypedClients)
	t.Run("Selectors", c.testSelectors)
	t.Run("Lists", c.testLists)
	t.Run("NewestLists", c.testNewestLists)
	t.Run("Namespaces", c.testNamespaces)
	t.Run("Events", c.testEvents)
	t.Run("EventWatches", c.testEventWatches)
	t.Run("EventInformers", c.testEventInformers)
	t.Run("Lives", c.testLives)
}
