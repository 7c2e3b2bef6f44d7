package clients

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A candidate takes part in a leader election until it is stopped.
type candidate struct {
	leads chan struct{} // closed when the candidate becomes the leader
	lost  chan struct{} // closed when the candidate is no longer the leader
	stop  context.CancelFunc
}

// longLease is so long that no candidate loses its lease only because the machine is busy.
const longLease = 5 * time.Minute

// runCandidate starts a candidate with the given name. If release is true, the candidate releases
// the lease when it is stopped.
func runCandidate(t *testing.T, client kubernetes.Interface, name string, lease time.Duration,
	release bool,
) *candidate {
	t.Helper()
	c := &candidate{leads: make(chan struct{}), lost: make(chan struct{})}
	elector := testkit.Must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "boss"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: lease, RenewDeadline: lease * 2 / 3, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(c.leads) },
			OnStoppedLeading: func() { close(c.lost) },
		},
	}))(t)
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	go elector.Run(ctx) // before Run returns, it calls OnStoppedLeading
	t.Cleanup(func() {
		stop()
		<-c.lost
	})
	return c
}

// The test covers only Leases, because client-go no longer supports locks with ConfigMaps
// and Endpoints.
func TestLeadershipPassesOn(t *testing.T) {
	t.Parallel()
	for _, release := range []bool{true, false} {
		t.Run(fmt.Sprintf("release=%t", release), func(t *testing.T) {
			t.Parallel()
			s := testapi.Start(t, "leases.v1.coordination.k8s.io=Lease")
			client := newClientset(t, s.Config(testapi.HTTP2))
			lease := longLease
			if !release {
				lease = 3 * time.Second
			}
			first := runCandidate(t, client, "first", lease, release)
			<-first.leads
			wantHolder(t, client, "first")
			second := runCandidate(t, client, "second", longLease, true)
			first.stop()
			<-first.lost
			// Without a release, the second candidate must wait until the lease expires.
			<-second.leads
			wantHolder(t, client, "second")
		})
	}
}

func wantHolder(t *testing.T, client kubernetes.Interface, want string) {
	t.Helper()
	lease := testkit.Must(client.CoordinationV1().Leases("kube-system").Get(t.Context(), "boss",
		metav1.GetOptions{}))(t)
	if got := lease.Spec.HolderIdentity; got == nil || *got != want {
		t.Errorf("the holder of the lease is %v, want %s", got, want)
	}
	if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.IsZero() {
		t.Error("the lease has no renewTime")
	}
}
