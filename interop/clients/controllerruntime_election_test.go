package clients

import (
	"context"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/testapi"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const leaseResource = "leases.v1.coordination.k8s.io=Lease"

func electionOptions() manager.Options {
	o := managerOptions()
	o.LeaderElection, o.LeaderElectionNamespace, o.LeaderElectionID = true, "default", "widgets"
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(longLease), ptr.To(longLease*2/3),
		ptr.To(100*time.Millisecond)
	o.LeaderElectionReleaseOnCancel = true
	return o
}

// readLease returns the lease of the leader. It repeats the request if its connection is lost.
func readLease(t *testing.T, c client.Client) coordinationv1.LeaseSpec {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "widgets"}}
	eventually(t, "lease", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(l), l)
		return err == nil, unlessLost(err)
	})
	return l.Spec
}

func TestLeaderKeepsItsLeaseOverARestart(t *testing.T) {
	s := testapi.Start(t, widgetResource, leaseResource)
	c := newControllerClient(t, s)
	first := startController(t, s, electionOptions(), nil)
	<-first.manager.Elected()
	second := startController(t, s, electionOptions(), nil)
	createObjects(t, c, newWidget("before", "text"))
	waitUntilReady(t, c, "before", "text")
	was := readLease(t, c)

	s.Restart(nil)
	eventually(t, "renewal of the lease", func(context.Context) (bool, error) {
		return readLease(t, c).RenewTime.After(was.RenewTime.Time), nil
	})
	if now := readLease(t, c); *now.HolderIdentity != *was.HolderIdentity ||
		*now.LeaseTransitions != *was.LeaseTransitions {
		t.Errorf("got %v, want the same leader as before the restart, %v", now, was)
	}
	createObjects(t, c, newWidget("between", "text"))
	waitUntilReady(t, c, "between", "text")
	if calls := second.calls.Load(); calls != 0 {
		t.Errorf("the controller that is not the leader was called %d times, want 0", calls)
	}

	first.stop()
	<-second.manager.Elected()
	createObjects(t, c, newWidget("after", "text"))
	waitUntilReady(t, c, "after", "text")
	if now := readLease(t, c); *now.HolderIdentity == *was.HolderIdentity || second.calls.Load() == 0 {
		t.Errorf("got %v and %d calls of the second controller, want it to lead", now, second.calls.Load())
	}
}
