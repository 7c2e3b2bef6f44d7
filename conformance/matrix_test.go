package conformance_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

const (
	minCuts = 3
	writers = 4

	// Actors have random numbers of their own: writers, then followers.
	firstWatcherActor = 100
)

// sentinel is the last object that is written: after it, nothing is missing that is to come.
var sentinel = listwatch.Key{Name: "sentinel"}

// A matrix is one history, and a watcher for every way to follow it.
type matrix struct {
	cells    []cell
	servers  map[serverKey]*servertest.Server
	things   *store.Collection
	start    listwatch.Version
	log      *writeLog
	throttle *throttle

	mu             sync.Mutex
	openedWatchers map[int]bool  // guarded by mu; the watchers whose first stream is open, or who gave up
	ready          chan struct{} // closed when all have begun
}

// opened says that a watcher has a stream, or will never have one.
func (m *matrix) markOpened(number int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.openedWatchers[number] {
		return
	}
	if m.openedWatchers[number] = true; len(m.openedWatchers) == len(m.cells) {
		close(m.ready)
	}
}

// One history is written once and followed over every legal cell of the matrix at the same time, on sockets. Every watcher is cut
// off at random bytes and resumes over other transports. What it saw must be the history, byte for byte; over CBOR, value for value.
//
// The watchers run together whatever -run selects; a subtest tells how one of them fared.
func TestEveryCellDeliversTheSameHistory(t *testing.T) {
	t.Logf("seed %d: repeat with -seed %[1]d", seed())
	m := newMatrix(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	followers, faults := m.startWatchers(ctx)
	if err := m.write(ctx); err != nil {
		t.Errorf("write: %v", err)
		cancel()
	}
	history := m.log.history()
	var all watchCounts
	parts := make(map[string]*watchCounts) // by transport, and by compression
	for i, f := range followers {
		err := <-faults[i]
		t.Run(f.home.String(), func(t *testing.T) {
			if err == nil {
				err = f.verifyAll(history)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d events, %d of them here, %d cuts, %d within an event, %d resumes replayed %d events",
				len(f.versions), f.counts.ownCellEvents, f.counts.cuts, f.counts.cutsInEvent, f.counts.replayingResumes, f.counts.replayedEvents)
		})
		for _, name := range []string{f.home.client.transport, "compression " + f.home.compression.name} {
			if parts[name] == nil {
				parts[name] = new(watchCounts)
			}
			parts[name].add(f.counts)
		}
		all.add(f.counts)
	}
	m.verifyUnmodified(t, history)
	t.Logf("%d cells, %d writes, %d events over the cells themselves, %d cuts, %d within an event, %d resumes replayed %d events",
		len(followers), len(history), all.ownCellEvents, all.cuts, all.cutsInEvent, all.replayingResumes, all.replayedEvents)
	for name, tally := range parts {
		if tally.cutsInEvent == 0 || tally.replayingResumes == 0 {
			t.Errorf("%s: %d cuts fell within an event and %d resumes replayed history, want some of both: this run proves little",
				name, tally.cutsInEvent, tally.replayingResumes)
		}
	}
}

func newMatrix(t *testing.T) *matrix {
	db := memory.Open(memory.Options{HistoryAge: -1, HistoryBytes: -1, FrameCacheBytes: 64 << 20})
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	m := &matrix{things: things, start: db.Version(), log: newWriteLog(), openedWatchers: make(map[int]bool), ready: make(chan struct{})}
	m.cells = selectCells(cellsWhere(cell.isSupported))
	m.throttle = newThrottle(len(m.cells))
	m.servers = startServers(t, things)
	return m
}

// follow starts a watcher for every cell, and returns when all have a stream.
func (m *matrix) startWatchers(ctx context.Context) (followers []*matrixWatcher, faults []chan error) {
	for i, c := range m.cells {
		m.throttle.advance(i, m.start)
		f, fault := newMatrixWatcher(m, i, c), make(chan error, 1)
		followers, faults = append(followers, f), append(faults, fault)
		go func() { // faults waits for it
			defer m.markOpened(i)
			fault <- f.run(ctx)
		}()
	}
	<-m.ready
	return followers, faults
}

// write writes the history, and the sentinel behind it.
func (m *matrix) write(ctx context.Context) error {
	done := make(chan error)
	for i := range writers {
		w := newWriter(fmt.Sprintf("writer-%d", i), uint64(i), m.things, m.log)
		go func() { done <- m.writeAs(ctx, w) }()
	}
	var first error
	for range writers {
		if err := <-done; err != nil && first == nil {
			first = err
		}
	}
	if first != nil {
		return first
	}
	return newWriter("sentinel", writers, m.things, m.log).put(ctx, sentinel, map[string]string{"tier": "gold"}, objectSize)
}

func (m *matrix) writeAs(ctx context.Context, w *writer) error {
	for m.log.fewestVisible() < minEvents+otherCellEvents {
		if err := w.write(ctx); err != nil {
			return err
		}
		if err := m.throttle.wait(ctx, m.log.newestVersion()); err != nil {
			return err
		}
	}
	return nil
}

// checkAll judges what f saw as a whole, and whether it had anything to bear.
func (f *matrixWatcher) verifyAll(history []*recordedWrite) error {
	if err := verifyOrder(history, f.selector, f.versions); err != nil {
		return err
	}
	if f.counts.ownCellEvents < minEvents {
		return fmt.Errorf("%d events came over this cell, want at least %d", f.counts.ownCellEvents, minEvents)
	}
	if f.counts.cuts < minCuts {
		return fmt.Errorf("cut off %d times, want at least %d", f.counts.cuts, minCuts)
	}
	return nil
}

// checkUntouched holds the objects that everybody shared against what they were when they were written.
func (m *matrix) verifyUnmodified(t *testing.T, history []*recordedWrite) {
	size, count, large := 0, 0, 0
	for _, w := range history {
		if w.now == nil {
			continue
		}
		if sha256.Sum256(w.now.data) != w.now.sum {
			t.Errorf("%s at version %d has been modified since it was written: %s", w.key, w.version, excerptAt(w.now.data, 0))
		}
		if len(w.now.data) >= largeSize {
			large++
			continue
		}
		size += len(w.now.data)
		count++
	}
	t.Logf("%d objects of %d bytes on average, %d of %d or more", count, size/max(count, 1), large, largeSize)
	if large == 0 {
		t.Error("no object was large")
	}
}
