package faults

import (
	"strconv"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"github.com/listwatch/listwatch/store/memory"
	v1 "k8s.io/api/core/v1"
)

func TestInformersListAgainWhenTheServerHasLostItsStore(t *testing.T) {
	t.Parallel()
	for _, watchList := range []bool{true, false} {
		// The versions of a store begin with the time, so that those that the informer knows are too old for one opened later.
		came := comeBackWith(t, watchList, func() *memory.DB { return memory.Open(memory.Options{}) })
		if came.expired != 1 || came.relists() != 1 {
			t.Errorf("WatchList %v: got %+v, want a 410 and then the state once", watchList, came)
		}
	}
}

// Without WatchList it takes 40 seconds, with any server: client-go tries a list ten times that is answered 504 with Retry-After.
func TestInformersListAgainWhenTheServerComesBackFromABackup(t *testing.T) {
	t.Parallel()
	// Opened before the other store, it is behind what the informer knows.
	backup := memory.Open(memory.Options{})
	came := comeBackWith(t, true, func() *memory.DB { return backup })
	if came.expired != 0 || came.streamed != 2 || came.lists != 0 {
		t.Errorf("got %+v, want the state streamed twice: from the version that is to come, in vain, and from none", came)
	}
}

// comeBackWith restarts a server with another store, with half of the objects. It returns what came over the connections of an
// informer until it had what the server has.
func comeBackWith(t *testing.T, watchList bool, open func() *memory.DB) counts {
	t.Helper()
	server := kubetest.Start(t)
	before := newWriter(t, server.Collection("pods"), 200)
	f := follow(t, server, kubetest.HTTP2, watchList)
	if err := before.churn(0, 20); err != nil {
		t.Fatal(err)
	}
	f.sees(t, before.newest())
	was := f.sessions.now()
	server.Restart(func() {
		server.Swap(open())
		newWriter(t, server.Collection("pods"), 100)
	})
	last, err := server.Collection("pods").Get(t.Context(), keyOf(99))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, f.name+": has the new state", func() bool { return f.has(last) })
	came := f.sessions.now().since(was)
	f.checkStore(t)
	return came
}

// has reports whether the informer has o, at its version.
func (f *follower) has(o *listwatch.Object) bool {
	obj, ok, err := f.informer.GetStore().GetByKey(o.Key.Namespace + "/" + o.Key.Name)
	return err == nil && ok && obj.(*v1.Pod).ResourceVersion == strconv.FormatUint(uint64(o.Version), 10)
}
