package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
)

// The writers move objects between nodes. In a consistent snapshot, the index and the items
// contain the same number of objects per node.
func TestReadsAreConsistentDuringWrites(t *testing.T) {
	const things, nodes, rounds = 200, 4, 2000
	var x Indexer[*thing]
	for i := range things {
		put(t, &x, fmt.Sprintf("ns/%d=%d", i, i%nodes))
	}
	if err := x.AddIndex("node", byNode); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	reader := func(read func() error) {
		readers.Go(func() {
			for {
				if err := read(); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	reader(func() error { return checkIndexMatchesItems(x.Snapshot(), things) })
	reader(func() error {
		all, err := x.List(listwatch.Query{Selection: listwatch.Selection{Namespace: "ns"}})
		if err != nil || len(all) != things {
			return fmt.Errorf("List returned %d objects, error %w; want %d", len(all), err, things)
		}
		return nil
	})
	late := 0
	reader(func() error {
		_, err := x.ByIndex("node", "1")
		x.Get(keyOf("7"))
		if late == 100 { // more indexes only make the writers slower
			return err
		}
		late++
		return errors.Join(err, x.AddIndex(fmt.Sprint("late", late), func(*Item[*thing]) []string { return nil }))
	})
	for w := range 2 {
		writers.Go(func() {
			for i := range rounds {
				word := fmt.Sprintf("ns/%d=%d", rand.IntN(things), rand.IntN(nodes))
				if err := x.Put(parseThing(word)); err != nil {
					t.Error(err)
				}
				if w == 0 {
					x.SetVersion(listwatch.Version(i))
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// checkIndexMatchesItems compares the index of a snapshot with its items.
func checkIndexMatchesItems(s *Snapshot[*thing], want int) error {
	byNode := map[string]int{}
	for _, v := range s.All() {
		byNode[v.Node]++
	}
	total := 0
	for node, n := range byNode {
		found, err := s.ByIndex("node", node)
		if err != nil {
			return err
		}
		i := 0
		for key, v := range found {
			if v.Node != node {
				return fmt.Errorf("%s is indexed under node %s, but its node is %s", key, node, v.Node)
			}
			i++
		}
		if i != n {
			return fmt.Errorf("the index holds %d objects of node %s, want %d", i, node, n)
		}
		total += n
	}
	if total != want || s.Len() != want {
		return fmt.Errorf("found %d objects, Len() = %d, want %d", total, s.Len(), want)
	}
	return nil
}

// In this test the list cannot end before the write is done. If the list blocked writers,
// the test would deadlock.
func TestRunningListDoesNotBlockWriters(t *testing.T) {
	var x Indexer[*thing]
	if err := x.AddIndex("node", byNode); err != nil {
		t.Fatal(err)
	}
	put(t, &x, "ns/a=1", "ns/b=1", "ns/c=1")
	found, err := x.Snapshot().ByIndex("node", "1")
	if err != nil {
		t.Fatal(err)
	}
	for range x.Snapshot().All() {
		n := 0
		for range found {
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				put(t, &x, fmt.Sprintf("ns/new%d=1", n))
				_ = x.Delete(keyOf("b"))
			}()
			<-wrote
			n++
		}
		if n != 3 {
			t.Errorf("the list shows %d objects, want the 3 of the snapshot", n)
		}
		break
	}
}

// Several goroutines write to the model and deliver the events in order, some of them as
// lists. Another goroutine consumes the queue. At the end the store must equal the model.
func TestConcurrentProducersConverge(t *testing.T) {
	const writes = 5000
	q := newFIFOTest(t)
	var mu sync.Mutex // orders the writes
	db := database{now: map[listwatch.Key]listwatch.Version{}}
	produce := func(r *rand.Rand) error {
		mu.Lock()
		defer mu.Unlock()
		before := len(db.log)
		db.write(testKeys[r.IntN(len(testKeys))], r.IntN(3) > 0)
		if r.IntN(50) == 0 {
			return q.fifo.Replace(db.list(), db.version()) // a list instead of the event
		}
		if r.IntN(10) == 0 {
			q.fifo.Resync()
		}
		return q.fifo.Apply(db.log[before:]...)
	}
	var producers, others sync.WaitGroup
	for p := range 4 {
		producers.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(p)))
			for range writes {
				if err := produce(r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	others.Go(func() {
		var claimed listwatch.Version
		for {
			err := q.fifo.Pop(context.Background(), func(d Deltas[*thing], _ bool) error { return q.keep(d) })
			if errors.Is(err, io.EOF) {
				return
			}
			if v := q.fifo.Version(); v < claimed || q.fifo.Len() > len(testKeys) {
				t.Errorf("the version changes from %d to %d with %d keys queued", claimed, v, q.fifo.Len())
			} else {
				claimed = v
			}
		}
	})
	producers.Wait()
	q.fifo.Close()
	others.Wait()
	if !q.fifo.HasSynced() {
		t.Error("HasSynced() is false after everything was handled")
	}
	got := map[listwatch.Key]listwatch.Version{}
	for i := range q.store.Items() {
		got[i.Key] = i.Version
	}
	if !maps.Equal(got, db.now) || q.fifo.Version() != db.version() {
		t.Errorf("the store ends with %v at version %d, want %v at %d", got, q.fifo.Version(), db.now, db.version())
	}
	if keys := slices.Collect(maps.Keys(q.fifo.queue.entries)); len(keys) > 0 {
		t.Errorf("the queue still holds %v", keys)
	}
}
