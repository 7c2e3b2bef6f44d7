//go:build !race

package kubernetes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// A countingStore reports each patch that succeeded.
type countingStore struct {
	*client.Remote
	patched chan struct{}
}

func (c countingStore) Patch(ctx context.Context, key listwatch.Key, p listwatch.Patch) (*listwatch.Object, error) {
	o, err := c.Remote.Patch(ctx, key, p)
	if err == nil {
		select {
		case c.patched <- struct{}{}:
		case <-ctx.Done():
		}
	}
	return o, err
}

// A Presence needs nothing of its server but Kubernetes' verbs: a patch with only a uid writes
// nothing, and gets a conflict for the object of a successor. Only the end of an object whose
// process died needs a server with a TTL.
func TestPresenceWorksWithKubernetes(t *testing.T) {
	server := apiserver.Start(t)
	leases := schema.GroupVersionResource{Group: relayGroup, Version: "v1", Resource: "leases"}
	createCRD(t, server.Config(), leases, "Lease")
	c, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	remote := &client.Remote{URL: server.URL + "/apis/" + relayGroup + "/v1/leases", HTTPClient: c}
	defer remote.Close()
	w, err := remote.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	object := `{"apiVersion":"` + relayGroup + `/v1","kind":"Lease","metadata":{"name":"agent","namespace":"default"}}`
	run := func() (renewed <-chan struct{}, ended <-chan error, stop context.CancelFunc) {
		ctx, stop := context.WithCancel(t.Context())
		store, errs := countingStore{remote, make(chan struct{}, 1)}, make(chan error, 1)
		go func() {
			errs <- controller.Presence{Store: store, Object: []byte(object), Every: 20 * time.Millisecond}.Run(ctx)
			close(store.patched)
		}()
		return store.patched, errs, stop
	}
	firstRenewed, firstEnded, stopFirst := run()
	defer stopFirst()
	for range 3 {
		if _, running := <-firstRenewed; !running {
			t.Fatalf("the first process has ended: %v", <-firstEnded)
		}
	}
	secondRenewed, secondEnded, stopSecond := run()
	defer stopSecond()
	for range firstRenewed { // until its end
	}
	if err := <-firstEnded; !errors.Is(err, listwatch.Conflict) {
		t.Errorf("the first process: got %v, want a conflict", err)
	}
	<-secondRenewed
	stopSecond()
	if err := <-secondEnded; !errors.Is(err, context.Canceled) {
		t.Errorf("the second process: got %v, want context.Canceled", err)
	}
	for _, want := range []listwatch.EventType{
		listwatch.Added, listwatch.Deleted, listwatch.Added, listwatch.Deleted,
	} {
		var event [1]listwatch.Event
		if _, err := w.Next(t.Context(), event[:]); err != nil || event[0].Type != want {
			t.Fatalf("got %v, %v, want %v", event[0], err, want)
		}
	}
}
