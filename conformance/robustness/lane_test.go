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
	seedFlag  = flag.Uint64("seed", 0, "seed of the run; 0: a new one each time")
	realTime  = flag.Duration("for", onSockets.run, "how long the run on sockets has faults")
	fakeTime  = flag.Duration("simulated", simulated.run, "how long the run in memory has faults, by its own clock")
	histories = flag.String("histories", "", "a directory to keep what was recorded in; empty: only what fails is kept, with -artifacts")
)

func seed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return newSeed()
}

// Every watcher sees every write exactly, in order and once, whatever the network, the server and the store do to it: on sockets.
func TestWatchersBearFaults(t *testing.T) {
	times := onSockets
	times.run = *realTime
	judge(t, setup{seed: seed(), network: sockets{}, require: enough, times: times})
}

// The same in memory with a clock of its own, for hours if need be.
func TestWatchersBearFaultsInSimulatedTime(t *testing.T) {
	simulate(t, setup{require: enough})
}

// A store that keeps some fifty writes only: watchers that fall behind are told so, and nothing is skipped.
func TestWatchersBearFaultsAndAShortHistory(t *testing.T) {
	simulate(t, setup{require: enough, history: 30 << 10})
}

// simulate judges a world in memory.
func simulate(t *testing.T, s setup) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.seed, s.network, s.times = seed(), &inMemory{}, simulated
		s.times.run = *fakeTime
		judge(t, s)
	})
}

// simulated are times like those that servers and clients have by default.
var simulated = times{
	run: 6 * time.Minute, patience: 24 * time.Hour, pause: 2 * time.Second, trouble: 15 * time.Second, bookmark: 15 * time.Second,
	watch: 5 * time.Minute, heartbeat: 20 * time.Second, write: 15 * time.Second, idle: 40 * time.Second, fault: 20 * time.Second,
}

// judge runs a world and reports what is wrong.
func judge(t *testing.T, s setup) {
	t.Helper()
	s.name = t.Name()
	w, err := newWorld(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.judged(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range r.Failures {
		t.Error(wrong)
	}
	t.Logf("seed %d\n%s", w.seed, r.Report.Summary.String())
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
		t.Logf("kept in %s", path)
	}
}
