package controllerruntime

import (
	"context"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const leases = "leases.v1.coordination.k8s.io=Lease"

func electing() manager.Options {
	o := options()
	o.LeaderElection, o.LeaderElectionNamespace, o.LeaderElectionID = true, "default", "widgets"
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(15*time.Second), ptr.To(10*time.Second), ptr.To(100*time.Millisecond)
	o.LeaderElectionReleaseOnCancel = true
	return o
}

// lease returns what the leader has written.
func lease(t *testing.T, c client.Client) coordinationv1.LeaseSpec {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "widgets"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(l), l); err != nil {
		t.Fatal(err)
	}
	return l.Spec
}

func TestOneManagerLeadsOverARestartUntilItStops(t *testing.T) {
	s := kubetest.Start(t, widgets, leases)
	c := newClient(t, s)
	first := startController(t, s, electing(), nil)
	<-first.manager.Elected()
	second := startController(t, s, electing(), nil)
	create(t, c, newWidget("before", "text"))
	made(t, c, "before", "text")
	was := lease(t, c)

	s.Restart(nil)
	eventually(t, "the lease is renewed", func(context.Context) (bool, error) {
		return lease(t, c).RenewTime.After(was.RenewTime.Time), nil
	})
	if now := lease(t, c); *now.HolderIdentity != *was.HolderIdentity || *now.LeaseTransitions != *was.LeaseTransitions {
		t.Errorf("got %v, want the leader of before the restart, %v", now, was)
	}
	create(t, c, newWidget("between", "text"))
	made(t, c, "between", "text")
	if calls := second.calls.Load(); calls != 0 {
		t.Errorf("the one that doesn't lead was called %d times", calls)
	}

	first.stop()
	<-second.manager.Elected()
	create(t, c, newWidget("after", "text"))
	made(t, c, "after", "text")
	if now := lease(t, c); *now.HolderIdentity == *was.HolderIdentity || second.calls.Load() == 0 {
		t.Errorf("got %v and %d calls, want the other to lead", now, second.calls.Load())
	}
}
