package clients

import (
	"context"
	"strconv"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/store/memory"
	v1 "k8s.io/api/core/v1"
)

func TestInformersRelistFromANewStore(t *testing.T) {
	t.Parallel()
	for _, watchList := range []bool{true, false} {
		// The first version of a store is the current time, so a store opened later
		// considers the versions of the informer too old.
		got := swapStore(t, watchList, func() *memory.DB { return memory.Open(memory.Options{}) })
		if got.expired != 1 || got.relists() != 1 {
			t.Errorf("WatchList %v: got %+v, want a 410 and then one list", watchList, got)
		}
	}
}

// The test covers only WatchList. Without it, client-go takes 40 seconds with any server,
// because it retries a list ten times after a 504 with Retry-After.
func TestInformersRelistFromABackup(t *testing.T) {
	t.Parallel()
	// The first version of a store is the current time. The backup is opened before the store
	// that the informer follows, so the backup's versions are lower.
	backup := memory.Open(memory.Options{})
	got := swapStore(t, true, func() *memory.DB { return backup })
	if got.expired != 0 || got.streamed != 2 || got.lists != 0 {
		t.Errorf("got %+v, want two streaming lists: one at the known version, which fails, and one without a version",
			got)
	}
}

// swapStore restarts a server with another store, which contains half of the objects. It
// returns the requests that an informer sends until it has the new state.
func swapStore(t *testing.T, watchList bool, open func() *memory.DB) requestCounts {
	t.Helper()
	server := testapi.Start(t)
	before := newPodWriter(t, server.Collection("pods"), 200)
	f := startPodInformer(t, server, testapi.HTTP2, watchList)
	if err := before.replaceHalf(0, 20); err != nil {
		t.Fatal(err)
	}
	f.waitForVersion(t, before.newest())
	earlier := f.requests.snapshot()
	server.Restart(func() {
		server.Swap(open())
		newPodWriter(t, server.Collection("pods"), 100)
	})
	last, err := server.Collection("pods").Get(t.Context(), podKey(99))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, f.name+": new state", func(context.Context) (bool, error) { return f.has(last), nil })
	counts := f.requests.snapshot().since(earlier)
	f.checkStore(t)
	return counts
}

// has reports whether the informer has o at the same version.
func (p *podInformer) has(o *listwatch.Object) bool {
	obj, ok, err := p.informer.GetStore().GetByKey(o.Key.Namespace + "/" + o.Key.Name)
	return err == nil && ok && obj.(*v1.Pod).ResourceVersion == strconv.FormatUint(uint64(o.Version), 10)
}
