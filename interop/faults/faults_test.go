package faults

import (
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
)

// objects is how many pods there are.
const objects = 10_000

// A scene is a server, somebody who writes to it all the time, and informers that follow it.
type scene struct {
	server    *kubetest.Server
	writer    *writer
	followers []*follower
}

func TestInformersOfTenThousandObjectsOutliveRestartsCutsAndLostHistory(t *testing.T) {
	t.Parallel()
	s := &scene{server: kubetest.Start(t)}
	s.writer = newWriter(t, s.server.Collection("pods"), objects)
	stop := s.writer.start(t)
	s.followers = []*follower{follow(t, s.server, kubetest.HTTP2, true), follow(t, s.server, kubetest.HTTP1, false)}
	first := uint64(s.server.DB.Version())
	s.allSee(t, first+1) // so that every watch is open
	s.restart(t)
	s.cuts(t)
	s.nothingIsMissing(t, first)
	s.lostHistory(t)
	stop()
	for _, f := range s.followers {
		f.checkEnd(t, s.writer.newest())
	}
}

// allSee waits until all followers have seen version, or something newer.
func (s *scene) allSee(t *testing.T, version uint64) {
	t.Helper()
	for _, f := range s.followers {
		f.sees(t, version)
	}
}

// during does something and returns what came over the connections of each follower until all have seen what was written after it.
func (s *scene) during(t *testing.T, do func()) []counts {
	t.Helper()
	all := make([]counts, len(s.followers))
	for i, f := range s.followers {
		all[i] = f.sessions.now()
	}
	do()
	s.allSee(t, s.writer.newest()+1) // the store tells its version a moment after the event, which may be before do
	for i, f := range s.followers {
		all[i] = f.sessions.now().since(all[i])
	}
	return all
}

// restart stops the server until all followers have found nobody there. They go on where they were.
func (s *scene) restart(t *testing.T) {
	t.Helper()
	came := s.during(t, func() {
		s.server.Restart(func() {
			for _, f := range s.followers {
				eventually(t, f.name+": is refused", func() bool { return f.sessions.now().refused > 0 })
			}
		})
	})
	for i, c := range came {
		if c.refused == 0 || c.resumed != 1 || c.relists() > 0 || c.expired > 0 {
			t.Errorf("%s: a restart: got %+v, want to be refused, and one watch that goes on", s.followers[i].name, c)
		}
	}
}

// cuts resets all connections, ten times, once a second. Each time all followers come back before the next, and go on where they were.
func (s *scene) cuts(t *testing.T) {
	t.Helper()
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for n := range 10 {
		<-each.C
		for i, c := range s.during(t, s.server.Cut) {
			if c != (counts{resumed: 1}) {
				t.Errorf("%s: cut %d: got %+v, want one watch that goes on", s.followers[i].name, n+1, c)
			}
		}
	}
}

// nothingIsMissing checks that each write after version was told to each handler: none has listed meanwhile.
func (s *scene) nothingIsMissing(t *testing.T, version uint64) {
	t.Helper()
	last := s.writer.newest()
	s.allSee(t, last)
	versions := s.writer.between(version, last)
	t.Logf("%d changes over a restart and ten cuts", len(versions))
	for _, f := range s.followers {
		if missing := f.handler.missing(versions); len(missing) > 0 {
			t.Errorf("%s: missed %d of %d changes, the first is %d", f.name, len(missing), len(versions), missing[0])
		}
	}
}

// lostHistory compacts the history while the followers are cut off and behind. They must list again, each in its way.
func (s *scene) lostHistory(t *testing.T) {
	t.Helper()
	const deleted = 50
	came := s.during(t, func() {
		s.server.CutWhile(func() {
			if err := s.writer.churn(0, 2*deleted); err != nil {
				t.Error(err)
			}
			s.server.DB.Compact()
		})
	})
	for i, c := range came {
		f := s.followers[i]
		want := counts{expired: 1, resumed: 2, lists: 1}
		if f.watchList {
			want = counts{expired: 1, resumed: 1, streamed: 1}
		}
		if c != want {
			t.Errorf("%s: lost history: got %+v, want %+v", f.name, c, want)
		}
		// About a tenth of the pods were gone before.
		if n := f.handler.deletesByList(); n < deleted/2 {
			t.Errorf("%s: learned of %d deletes by the list, want about %d", f.name, n, deleted)
		}
	}
}
