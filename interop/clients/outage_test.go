package clients

import (
	"context"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/testapi"
)

// podCount is the number of pods.
const podCount = 10_000

// An outageTest consists of a server, a writer that never pauses, and informers of the
// pods.
type outageTest struct {
	server    *testapi.Server
	writer    *podWriter
	informers []*podInformer
}

func TestInformersSurviveOutages(t *testing.T) {
	t.Parallel()
	s := &outageTest{server: testapi.Start(t)}
	s.writer = newPodWriter(t, s.server.Collection("pods"), podCount)
	stop := s.writer.start(t)
	s.informers = []*podInformer{
		startPodInformer(t, s.server, testapi.HTTP2, true),
		startPodInformer(t, s.server, testapi.HTTP1, false),
	}
	first := uint64(s.server.DB.Version())
	s.waitForVersion(t, first+1) // after this, every watch is open
	s.restart(t)
	s.cutRepeatedly(t)
	s.wantAllVersions(t, first)
	s.compactWhileCut(t)
	stop()
	for _, f := range s.informers {
		f.check(t, s.writer.newest())
	}
}

// waitForVersion waits until all informers have seen the given version or a newer one.
func (o *outageTest) waitForVersion(t *testing.T, version uint64) {
	t.Helper()
	for _, f := range o.informers {
		f.waitForVersion(t, version)
	}
}

// countDuring calls do, and then waits until all informers have seen a later write. It
// returns the requests of each informer during that time.
func (o *outageTest) countDuring(t *testing.T, do func()) []requestCounts {
	t.Helper()
	all := make([]requestCounts, len(o.informers))
	for i, f := range o.informers {
		all[i] = f.requests.snapshot()
	}
	do()
	// An informer may see a version before newest returns it, so wait for the next version. The
	// informer may find that next version in a list, so also wait for a later version, which only
	// the watch after the list can return.
	o.waitForVersion(t, o.writer.newest()+1)
	o.waitForVersion(t, o.writer.newest()+2)
	for i, f := range o.informers {
		all[i] = f.requests.snapshot().since(all[i])
	}
	return all
}

// restart stops the server until all informers have been refused a connection. After the
// restart they must resume their watches.
func (o *outageTest) restart(t *testing.T) {
	t.Helper()
	counts := o.countDuring(t, func() {
		o.server.Restart(func() {
			for _, f := range o.informers {
				eventually(t, f.name+": refused connection", func(context.Context) (bool, error) {
					return f.requests.snapshot().refused > 0, nil
				})
			}
		})
	})
	for i, c := range counts {
		if c.refused == 0 || c.resumed != 1 || c.relists() > 0 || c.expired > 0 {
			t.Errorf("%s: restart: got %+v, want refused connections and one resumed watch", o.informers[i].name, c)
		}
	}
}

// cutRepeatedly resets all connections ten times, once a second. All informers must resume their
// watches before the next cut.
func (o *outageTest) cutRepeatedly(t *testing.T) {
	t.Helper()
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for n := range 10 {
		<-each.C
		for i, c := range o.countDuring(t, o.server.Cut) {
			if c != (requestCounts{resumed: 1}) {
				t.Errorf("%s: cut %d: got %+v, want one resumed watch", o.informers[i].name, n+1, c)
			}
		}
	}
}

// wantAllVersions checks that each handler has seen each write after the given version. No informer
// may have listed since then, because a list may skip versions.
func (o *outageTest) wantAllVersions(t *testing.T, version uint64) {
	t.Helper()
	last := o.writer.newest()
	o.waitForVersion(t, last)
	versions := o.writer.between(version, last)
	t.Logf("%d changes during a restart and ten cuts", len(versions))
	for _, f := range o.informers {
		if missing := f.events.missing(versions); len(missing) > 0 {
			t.Errorf("%s: %d of %d changes are missing, the first is %d", f.name, len(missing), len(versions),
				missing[0])
		}
	}
}

// compactWhileCut compacts the history while the informers are disconnected and lag behind.
// Each of them must then relist, with a streaming list if it uses streaming lists.
func (o *outageTest) compactWhileCut(t *testing.T) {
	t.Helper()
	const deleted = 50
	counts := o.countDuring(t, func() {
		o.server.CutWhile(func() {
			if err := o.writer.replaceHalf(0, 2*deleted); err != nil {
				t.Error(err)
			}
			o.server.DB.Compact()
		})
	})
	for i, c := range counts {
		f := o.informers[i]
		want := requestCounts{expired: 1, resumed: 2, lists: 1}
		if f.watchList {
			want = requestCounts{expired: 1, resumed: 1, streamed: 1}
		}
		if c != want {
			t.Errorf("%s: lost history: got %+v, want %+v", f.name, c, want)
		}
		// About a tenth of these pods did not exist before the deletion, so they have no tombstone.
		if n := f.events.tombstoneCount(); n < deleted/2 {
			t.Errorf("%s: got %d deletions from the list, want about %d", f.name, n, deleted)
		}
	}
}
