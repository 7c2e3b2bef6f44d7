//go:build !race

package components

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestComponentsWorkThroughARelay runs the same steps with components at the kube-apiserver, and
// then with components at a relay that has the default flags.
func TestComponentsWorkThroughARelay(t *testing.T) {
	compare(t, startNewEtcd)
}

// TestComponentsWorkThroughARelayOverOldEtcd does the same with an etcd that is too old to report
// its progress.
func TestComponentsWorkThroughARelayOverOldEtcd(t *testing.T) {
	compare(t, etcdtest.StartInstalled)
}

// slack is added to twice the time that a deletion takes directly. The sum is the limit for the
// relay.
const slack = 50 * time.Millisecond

// startNewEtcd starts an etcd that reports its progress, and returns its URL.
func startNewEtcd(t testing.TB) string {
	t.Helper()
	return etcdtest.Start(t, nil).URL
}

func compare(t *testing.T, startEtcd func(testing.TB) string) {
	times := map[string]map[string]time.Duration{}
	c := startCluster(t, startEtcd)
	for _, lane := range c.lanes {
		t.Run(lane.name, func(t *testing.T) {
			c.startComponents(t, lane.url)
			times[lane.name] = (&scenario{t, c.client, "components-" + lane.name}).run()
		})
	}
	for step, relayed := range times["relayed"] {
		direct := times["direct"][step]
		t.Logf("%s: directly %v, relayed %v", step, direct, relayed)
		if limited := step == deletion || step == quickDeletion; limited && relayed > 2*direct+slack {
			t.Errorf("%s takes %v through the relay, directly %v", step, relayed, direct)
		}
	}
}

// eventually calls done repeatedly until it returns true. It returns the time that this took.
func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) time.Duration {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for last := error(nil); ; {
		ok, err := done(ctx)
		if ok {
			return time.Since(begin)
		}
		last = err
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(fmt.Sprint(what, " has not happened: ", last))
		}
	}
}

// stepTimeout limits the time of a step. Only failing tests wait that long.
const stepTimeout = 4 * time.Minute
