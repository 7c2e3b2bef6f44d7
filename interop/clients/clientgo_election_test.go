package clients

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/interop/internal/testapi"
)

// Candidates of client-go and of package controller may be mixed, for example during an upgrade.
func TestElectionSharesLeaseWithClientGo(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t, "leases.v1.coordination.k8s.io=Lease")
	clientset := newClientset(t, s.Config(testapi.HTTP2))
	theirs := runCandidate(t, clientset, "theirs", longLease, true)
	<-theirs.leads
	leases := &client.Remote{URL: s.URL() + "/apis/coordination.k8s.io/v1/leases"}
	defer leases.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	leads, done := make(chan struct{}), make(chan error, 1)
	go func() { // returns when ctx ends
		e := controller.Election{
			Leases: leases, Key: listwatch.Key{Namespace: "kube-system", Name: "boss"}, Identity: "ours",
			// The candidate looks at the lease every Duration/6.
			Duration: 30 * time.Second,
		}
		done <- e.Run(ctx, func(ctx context.Context) error { close(leads); <-ctx.Done(); return ctx.Err() })
	}()
	wantHolder(t, clientset, "theirs")
	theirs.stop()
	<-theirs.lost
	<-leads
	wantHolder(t, clientset, "ours")
	last := runCandidate(t, clientset, "last", longLease, true)
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	<-last.leads
	wantHolder(t, clientset, "last")
}
