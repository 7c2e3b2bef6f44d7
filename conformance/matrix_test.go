package conformance_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

const (
	minCuts = 3
	writers = 4

	// Actors have random numbers of their own: writers, then followers.
	firstFollower = 100
)

// sentinel is the last object that is written: after it, nothing is missing that is to come.
var sentinel = listwatch.Key{Name: "sentinel"}

// A matrix is one history, and a watcher for every way to follow it.
type matrix struct {
	cells  []cell
	sites  map[siteKey]*site
	things *store.Collection
	start  listwatch.Version
	ledger *ledger
	pace   *pace

	mu    sync.Mutex
	begun map[int]bool  // guarded by mu; the watchers whose first stream is open, or who gave up
	ready chan struct{} // closed when all have begun
}

// opened says that a watcher has a stream, or will never have one.
func (m *matrix) opened(number int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun[number] {
		return
	}
	if m.begun[number] = true; len(m.begun) == len(m.cells) {
		close(m.ready)
	}
}

// One history is written once and followed over every legal cell of the matrix at the same time, on sockets. Every watcher is cut
// off at random bytes and resumes over other transports. What it saw must be the history, byte for byte; over CBOR, value for value.
//
// The watchers run together whatever -run selects; a subtest tells how one of them fared.
func TestEveryCellTellsTheSameHistory(t *testing.T) {
	t.Logf("seed %d: repeat with -seed %[1]d", seed())
	m := newMatrix(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	followers, faults := m.follow(ctx)
	if err := m.write(ctx); err != nil {
		t.Errorf("write: %v", err)
		cancel()
	}
	history := m.ledger.history()
	var all tally
	parts := make(map[string]*tally) // by transport, and by compression
	for i, f := range followers {
		err := <-faults[i]
		t.Run(f.home.String(), func(t *testing.T) {
			if err == nil {
				err = f.checkAll(history)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d events, %d of them here, %d cuts, %d within an event, %d resumes replayed %d events",
				len(f.versions), f.tally.atHome, f.tally.cuts, f.tally.torn, f.tally.replays, f.tally.replayed)
		})
		for _, name := range []string{f.home.client.transport, "compression " + f.home.compression.name} {
			if parts[name] == nil {
				parts[name] = new(tally)
			}
			parts[name].add(f.tally)
		}
		all.add(f.tally)
	}
	m.checkUntouched(t, history)
	t.Logf("%d cells, %d writes, %d events over the cells themselves, %d cuts, %d within an event, %d resumes replayed %d events",
		len(followers), len(history), all.atHome, all.cuts, all.torn, all.replays, all.replayed)
	for name, tally := range parts {
		if tally.torn == 0 || tally.replays == 0 {
			t.Errorf("%s: %d cuts fell within an event and %d resumes replayed history, want some of both: this run proves little",
				name, tally.torn, tally.replays)
		}
	}
}

func newMatrix(t *testing.T) *matrix {
	db := memory.Open(memory.Options{HistoryAge: -1, HistoryBytes: -1, FrameCacheBytes: 64 << 20})
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	m := &matrix{things: things, start: db.Version(), ledger: newLedger(), begun: make(map[int]bool), ready: make(chan struct{})}
	m.cells = chosen(cellsThat(cell.legal))
	m.pace = newPace(len(m.cells))
	m.sites = openSites(t, things)
	return m
}

// follow starts a watcher for every cell, and returns when all have a stream.
func (m *matrix) follow(ctx context.Context) (followers []*follower, faults []chan error) {
	for i, c := range m.cells {
		m.pace.reached(i, m.start)
		f, fault := newFollower(m, i, c), make(chan error, 1)
		followers, faults = append(followers, f), append(faults, fault)
		go func() { // faults waits for it
			defer m.opened(i)
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
		w := newWriter(fmt.Sprintf("writer-%d", i), uint64(i), m.things, m.ledger)
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
	return newWriter("sentinel", writers, m.things, m.ledger).put(ctx, sentinel, map[string]string{"tier": "gold"}, objectSize)
}

func (m *matrix) writeAs(ctx context.Context, w *writer) error {
	for m.ledger.fewestVisible() < minEvents+elsewhereEvents {
		if err := w.write(ctx); err != nil {
			return err
		}
		if err := m.pace.wait(ctx, m.ledger.head()); err != nil {
			return err
		}
	}
	return nil
}

// checkAll judges what f saw as a whole, and whether it had anything to bear.
func (f *follower) checkAll(history []*write) error {
	if err := checkOrder(history, f.selector, f.versions); err != nil {
		return err
	}
	if f.tally.atHome < minEvents {
		return fmt.Errorf("%d events came over this cell, want at least %d", f.tally.atHome, minEvents)
	}
	if f.tally.cuts < minCuts {
		return fmt.Errorf("cut off %d times, want at least %d", f.tally.cuts, minCuts)
	}
	return nil
}

// checkUntouched holds the objects that everybody shared against what they were when they were written.
func (m *matrix) checkUntouched(t *testing.T, history []*write) {
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
