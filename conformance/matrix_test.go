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
	minCuts = 2
	writers = 4

	// firstWatcherActor is the actor number of the first watcher; see newRandom. The actor
	// numbers of writers start at zero.
	firstWatcherActor = 100
)

// sentinel is the key of the last object that is written.
var sentinel = listwatch.Key{Name: "sentinel"}

// A matrix is one history and its servers, with a watcher for each cell.
type matrix struct {
	cells    []cell
	servers  map[serverKey]*servertest.Server
	things   *store.Collection
	start    listwatch.Version
	log      *writeLog
	throttle *throttle

	mu sync.Mutex
	// openedWatchers are the watchers that have opened their first stream or have failed;
	// guarded by mu.
	openedWatchers map[int]bool
	ready          chan struct{} // closed when openedWatchers is complete
}

// markOpened records that a watcher has opened a stream, or that it will never open one.
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

// The watchers of all supported cells watch one history at the same time, over sockets. Each
// watcher is cut off after a random number of bytes, and resumes over another transport. It must
// receive the history byte for byte, or value for value with CBOR.
//
// All watchers run regardless of -run. Each subtest reports the result of one watcher.
func TestEveryCellDeliversTheSameHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	t.Logf("seed %d; repeat with -seed %[1]d", seed())
	m := newMatrix(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	watchers, errs := m.startWatchers(ctx)
	if err := m.write(ctx); err != nil {
		t.Errorf("write: %v", err)
		cancel()
	}
	history := m.log.history()
	var all watchCounts
	groups := make(map[string]*watchCounts) // by transport and by compression
	for i, w := range watchers {
		err := <-errs[i]
		t.Run(w.home.String(), func(t *testing.T) {
			if err == nil {
				err = w.verifyAll(history)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d events, %d in the own cell, %d cuts, %d in the middle of an event, %d resumes replayed %d "+
				"events",
				len(w.versions), w.counts.ownCellEvents, w.counts.cuts, w.counts.cutsInEvent,
				w.counts.replayingResumes, w.counts.replayedEvents)
		})
		for _, name := range []string{w.home.client.transport, "compression " + w.home.compression.name} {
			if groups[name] == nil {
				groups[name] = new(watchCounts)
			}
			groups[name].add(w.counts)
		}
		all.add(w.counts)
	}
	m.verifyUnmodified(t, history)
	t.Logf("%d cells, %d writes, %d events in own cells, %d cuts, %d in the middle of an event, %d resumes replayed "+
		"%d events, %d dials timed out",
		len(watchers), len(history), all.ownCellEvents, all.cuts, all.cutsInEvent, all.replayingResumes,
		all.replayedEvents, all.timedOutDials)
	for name, counts := range groups {
		if counts.cutsInEvent == 0 || counts.replayingResumes == 0 {
			t.Errorf("%s: %d cuts in the middle of an event and %d resumes with replay, want both to be positive",
				name, counts.cutsInEvent, counts.replayingResumes)
		}
	}
}

func newMatrix(t *testing.T) *matrix {
	db := memory.Open(memory.Options{History: listwatch.Retention{Age: -1, Bytes: -1, FrameCacheBytes: 64 << 20}})
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	m := &matrix{
		things: things, start: db.Version(), log: newWriteLog(), openedWatchers: make(map[int]bool),
		ready: make(chan struct{}),
	}
	m.cells = selectCells(cellsWhere(cell.isSupported))
	m.throttle = newThrottle(len(m.cells))
	m.servers = startServers(t, things)
	return m
}

// startWatchers starts a watcher for each cell, and returns when each has opened a stream or
// failed.
func (m *matrix) startWatchers(ctx context.Context) (watchers []*matrixWatcher, errs []chan error) {
	for i, c := range m.cells {
		m.throttle.advance(i, m.start)
		w, result := newMatrixWatcher(m, i, c), make(chan error, 1)
		watchers, errs = append(watchers, w), append(errs, result)
		go func() { // joined by reading from errs
			defer m.markOpened(i)
			result <- w.run(ctx)
		}()
	}
	<-m.ready
	return watchers, errs
}

// write writes the history and then the sentinel.
func (m *matrix) write(ctx context.Context) error {
	done := make(chan error)
	for i := range writers {
		w := newWriter(fmt.Sprintf("writer-%d", i), uint64(i), m.things, m.log)
		if i < largeWriters {
			w.largeWrites = largeWritesPerWriter
		}
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
	return newWriter("sentinel", writers, m.things, m.log).put(ctx, sentinel,
		map[string]string{"tier": "gold"}, objectSize)
}

func (m *matrix) writeAs(ctx context.Context, w *writer) error {
	for m.log.fewestVisible() < minEvents+otherCellEvents || w.largeWrites > 0 {
		if err := w.write(ctx); err != nil {
			return err
		}
		if err := m.throttle.wait(ctx, m.log.newestVersion()); err != nil {
			return err
		}
	}
	return nil
}

// verifyAll verifies the order and completeness of all events, and that enough cuts
// occurred.
func (m *matrixWatcher) verifyAll(history []*recordedWrite) error {
	if err := verifyOrder(history, m.selector, m.versions); err != nil {
		return err
	}
	if m.counts.ownCellEvents < minEvents {
		return fmt.Errorf("%d events arrived in the watcher's own cell, want at least %d",
			m.counts.ownCellEvents, minEvents)
	}
	if m.counts.cuts < minCuts {
		return fmt.Errorf("the watcher was cut off %d times, want at least %d", m.counts.cuts, minCuts)
	}
	return nil
}

// verifyUnmodified verifies that the bytes of the objects, which all watchers share, were not
// modified after the writes.
func (m *matrix) verifyUnmodified(t *testing.T, history []*recordedWrite) {
	size, count, large := 0, 0, 0
	for _, w := range history {
		if w.now == nil {
			continue
		}
		if sha256.Sum256(w.now.data) != w.now.sum {
			t.Errorf("%s at version %d was modified after the write: %s", w.key, w.version, excerptAt(w.now.data, 0))
		}
		if len(w.now.data) >= largeSize {
			large++
			continue
		}
		size += len(w.now.data)
		count++
	}
	t.Logf("%d objects of %d bytes on average, %d objects of at least %d bytes", count,
		size/max(count, 1), large, largeSize)
	if large == 0 {
		t.Error("no large object was written")
	}
}
