package robustness

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	seedFlag = flag.Uint64("seed", 0, "seed of the run; 0 means a random seed")
	realTime = flag.Duration("for", socketTimings.duration, "how long to inject faults in the run on sockets")
	fakeTime = flag.Duration("simulated", simulatedTimings.duration,
		"how long to inject faults in the simulated runs, by the fake clock")
	histories = flag.String("histories", "",
		"directory for the recorded histories; if empty, only histories of failed runs are saved, with the test "+
			"artifacts")
)

func seed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return newSeed()
}

// On sockets, every watcher must see every write exactly once and in order, whatever faults
// occur.
func TestWatchersSurviveFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	times := socketTimings
	times.duration = *realTime
	runAndReport(t,
		clusterOptions{seed: seed(), network: tcpNetwork{}, requirements: minimumRequirements, timings: times})
}

// This test is like TestWatchersSurviveFaults, but runs in memory with a fake clock.
func TestWatchersSurviveFaultsInSimulatedTime(t *testing.T) {
	runSimulated(t, clusterOptions{requirements: minimumRequirements})
}

// The store keeps only about fifty writes. Watchers that fall behind must get Expired, and
// no event may be skipped silently.
func TestWatchersSurviveFaultsWithShortHistory(t *testing.T) {
	runSimulated(t, clusterOptions{requirements: minimumRequirements, historyBytes: 30 << 10})
}

// runSimulated runs a cluster in memory with a fake clock.
func runSimulated(t *testing.T, s clusterOptions) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.seed, s.network, s.timings = seed(), &memoryNetwork{}, simulatedTimings
		s.timings.duration = *fakeTime
		runAndReport(t, s)
	})
}

// simulatedTimings are similar to the defaults of servers and clients.
var simulatedTimings = timings{
	duration: time.Minute, maxOvertime: 24 * time.Hour, pause: 2 * time.Second, faultInterval: 15 * time.Second,
	bookmarkInterval: 15 * time.Second,
	watchTimeout:     5 * time.Minute, heartbeatInterval: 20 * time.Second, writeTimeout: 15 * time.Second,
	idleTimeout: 40 * time.Second, connectionFault: 20 * time.Second,
}

// runAndReport runs a cluster and reports its failures and violations.
func runAndReport(t *testing.T, s clusterOptions) {
	t.Helper()
	s.name = t.Name()
	c, err := newCluster(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.runAndCheck(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range r.Failures {
		t.Error(failure)
	}
	t.Logf("seed %d\n%s", c.seed, r.Report.Summary.String())
	if err := r.Report.Err(); err != nil {
		t.Error(err)
	}
	dir := *histories
	if dir == "" && t.Failed() {
		dir = t.ArtifactDir()
	}
	if dir != "" {
		path, err := r.History.Save(dir, t.Name())
		if err != nil {
			t.Error(err)
		}
		t.Logf("the history was saved as %s", path)
	}
}
