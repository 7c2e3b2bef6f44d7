package lane_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/conformance/watchcheck"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	seedFlag  = flag.Uint64("seed", 0, "seed of the run; 0: a new one each time")
	realTime  = flag.Duration("for", 4*time.Second, "how long the run on sockets has faults")
	fakeTime  = flag.Duration("simulated", simulated.run, "how long the run in memory has faults, by its own clock")
	histories = flag.String("histories", "", "a directory to keep what was recorded in; empty: only what fails is kept, with -artifacts")
)

func seed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return rand.Uint64N(1<<32) + 1
}

// enough is what a run must have had.
var enough = watchcheck.Requirements{
	Writes: 500, Events: 2000, Bookmarks: 100, Lists: 3, Resumes: 20, Expired: 5, Relists: 5,
	Bit:   map[string]int{"stall": 3, "drip": 3, "latency": 3},
	Ended: map[string]int{"reset": 3, "cut": 3, "half-open": 3, "kill": 3, "drain": 3},
}

// Every watcher sees every write exactly, in order and once, whatever the network, the server and the store do to it: on sockets.
func TestWatchersBearFaults(t *testing.T) {
	judge(t, newWorld(t, setup{seed: seed(), network: sockets{}, require: enough, times: times{
		run: *realTime, patience: 2 * time.Minute, pause: 10 * time.Millisecond, trouble: 250 * time.Millisecond, bookmark: 60 * time.Millisecond,
		watch: time.Second, heartbeat: 500 * time.Millisecond, write: time.Second, idle: 700 * time.Millisecond, fault: 300 * time.Millisecond,
	}}))
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
		judge(t, newWorld(t, s))
	})
}

// simulated are times like those that servers and clients have by default.
var simulated = times{
	run: 6 * time.Minute, patience: 24 * time.Hour, pause: 2 * time.Second, trouble: 15 * time.Second, bookmark: 15 * time.Second,
	watch: 5 * time.Minute, heartbeat: 20 * time.Second, write: 15 * time.Second, idle: 40 * time.Second, fault: 20 * time.Second,
}

// judge runs w and reports what is wrong.
func judge(t *testing.T, w *world) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), w.times.run+w.times.patience)
	defer cancel()
	h := w.run(ctx)
	r, err := watchcheck.Check(h, &watchcheck.Options{Violations: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range w.wrong {
		t.Error(err)
	}
	t.Logf("seed %d\n%s", w.seed, r.Summary.String())
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	dir := *histories
	if dir == "" && t.Failed() {
		dir = t.ArtifactDir()
	}
	if dir != "" {
		path, err := h.Save(dir, t.Name())
		if err != nil {
			t.Error(err)
		}
		t.Logf("kept in %s", path)
	}
}
