package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
)

// A fifoTest executes short commands on a DeltaFIFO and formats the popped deltas.
type fifoTest struct {
	testing.TB
	fifo  DeltaFIFO[*thing]
	store Indexer[*thing]
}

func newFIFOTest(t testing.TB) *fifoTest {
	q := &fifoTest{TB: t}
	q.fifo.KnownObjects = &q.store
	return q
}

// items parses words such as "a5 b6". Each is a key of one letter and a version.
func items(words string) []*Item[*thing] {
	var all []*Item[*thing]
	for word := range strings.FieldsSeq(words) {
		var v listwatch.Version
		if _, err := fmt.Sscan(word[1:], &v); err != nil {
			panic(err)
		}
		all = append(all, thingAt(keyOf(word[:1]), v, ""))
	}
	return all
}

// do executes commands such as "+a5" (Add), "*a6" (Update), "-a7" (Delete), "=9:a5,b6"
// (Replace), "@9" (Bookmark), "~a" (Sync) and "!" (pop).
func (f *fifoTest) do(words string) {
	f.Helper()
	for word := range strings.FieldsSeq(words) {
		var err error
		rest := word[1:]
		switch word[0] {
		case '+':
			err = f.fifo.Add(items(rest)[0])
		case '*':
			err = f.fifo.Update(items(rest)[0])
		case '-':
			err = f.fifo.Delete(items(rest)[0])
		case '=':
			version, list, _ := strings.Cut(rest, ":")
			err = f.fifo.Replace(items(strings.ReplaceAll(list, ",", " ")), items("v" + version)[0].Version)
		case '@':
			err = f.fifo.Bookmark(items("v" + rest)[0].Version)
		case '~':
			f.fifo.Sync(keyOf(rest))
		case '!':
			f.pop()
		}
		if err != nil {
			f.Fatal(err)
		}
	}
}

// pop pops one key, stores its object and returns a line such as "a: Deleted 5?, Added 7".
// "?" means FinalStateUnknown, and "^" the initial list.
func (f *fifoTest) pop() (line string) {
	f.Helper()
	err := f.fifo.Pop(f.Context(), func(d Deltas[*thing], initial bool) error {
		line = show(d, initial)
		return f.keep(d)
	})
	if err != nil {
		f.Fatal(err)
	}
	return line
}

func show(d Deltas[*thing], initial bool) string {
	var parts []string
	for delta := range d.All() {
		part := delta.Type.String() + " " + delta.Item.Version.String()
		if delta.FinalStateUnknown {
			part += "?"
		}
		if delta.Initial != initial {
			part += " (Initial differs)"
		}
		parts = append(parts, part)
	}
	line := d.Key.Name + ": " + strings.Join(parts, ", ")
	if initial {
		line += "^"
	}
	return line
}

func (f *fifoTest) keep(d Deltas[*thing]) error {
	last := d.At(d.Len() - 1)
	if last.Type == DeltaDeleted {
		return f.store.Delete(d.Key)
	}
	return f.store.Put(last.Item)
}

func (f *fifoTest) popAll() string {
	f.Helper()
	var lines []string
	for f.fifo.Len() > 0 {
		lines = append(lines, f.pop())
	}
	return strings.Join(lines, "; ")
}

func TestPendingChangesAreCoalescedPerKey(t *testing.T) {
	for _, c := range []struct{ name, before, commands, want string }{
		{"addition and updates become one addition", "", "+a1 *a2 *a3", "a: Added 3"},
		{"update of an unknown object becomes an addition", "", "*a2", "a: Added 2"},
		{"addition of a known object becomes an update", "+a1 !", "+a2", "a: Updated 2"},
		{"several updates become the newest one", "+a1 !", "*a2 *a3", "a: Updated 3"},
		{"addition and deletion cancel out", "", "+a1 *a2 -a3", ""},
		{"deletion of an unknown object is dropped", "", "-a3", ""},
		{"deletion supersedes an update", "+a1 !", "*a2 -a3", "a: Deleted 3"},
		{"recreated object", "+a1 !", "-a2 +a3", "a: Deleted 2, Added 3"},
		{"recreated and updated object", "+a1 !", "-a2 *a3 *a4", "a: Deleted 2, Added 4"},
		{"recreated and deleted object: deletion of the first one", "+a1 !", "-a2 +a3 -a4", "a: Deleted 2"},
		{"object recreated twice", "+a1 !", "-a2 +a3 -a4 +a5", "a: Deleted 2, Added 5"},
		{"keys keep the order in which they were first queued", "", "+b1 +a2 *b3", "b: Added 3; a: Added 2"},
		{"key that canceled out is queued at the end again", "", "+b1 +a2 -b3 +b4", "a: Added 2; b: Added 4"},
		{"sync of a queued key has no effect", "+a1 !", "*a2 ~a", "a: Updated 2"},
		{"sync queues only known keys", "+a1 !", "~a ~b ~a", "a: Sync 1"},
		{"update supersedes a sync", "+a1 !", "~a *a2", "a: Updated 2"},
		{"deletion supersedes a sync", "+a1 !", "~a -a2", "a: Deleted 2"},
		{"duplicates of queued changes", "", "+a1 *a2 +a1 *a2", "a: Added 2"},
		{"duplicates of handled changes", "+a1 ! *a2 !", "+a1 *a2", ""},
		{"deletion older than the known state", "+a5 !", "-a4 -a5", ""},
		{"duplicate deletion", "+a1 !", "-a2 -a2", "a: Deleted 2"},
		{"addition older than the queued deletion", "+a1 !", "-a3 +a2", "a: Deleted 3"},
		{"update older than the queued one", "", "+a1 *a3 *a2", "a: Added 3"},
		{"addition older than a deletion that superseded an update", "+a1 !", "*a2 -a4 +a3", "a: Deleted 4"},
		{"addition of a deleted object before the bookmark", "+a1 ! -a2 ! @2", "+a1", ""},
		{"resumed stream without a bookmark cancels out", "+a1 ! -a2 !", "+a1 -a2", ""},
		{"version zero is never a duplicate", "+a0 !", "*a0", "a: Updated 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newFIFOTest(t)
			q.do(c.before)
			q.do(c.commands)
			if got := q.popAll(); got != c.want {
				t.Errorf("after %q, %q yields %q, want %q", c.before, c.commands, got, c.want)
			}
		})
	}
}

func TestReplaceDetectsEveryDeletion(t *testing.T) {
	for _, c := range []struct{ name, before, commands, want string }{
		{"of a known object", "=1:a1 ! +b2 !", "=9:b2", "b: Replaced 2; a: Deleted 1?"},
		{"of a known and queued object: with the last state received", "=1:a1 !", "*a2 =9:", "a: Deleted 2?"},
		{"of a queued but unknown object: none", "=1: +a2", "=9:b3", "b: Replaced 3"},
		{"of an object whose deletion is queued: with its final state", "=1:a1 !", "-a2 =9:", "a: Deleted 2"},
		{"of a recreated object: deletion of the first one", "=1:a1 !", "-a2 +a3 =9:", "a: Deleted 2"},
		{"deleted object that the list contains again", "=1:a1 !", "-a2 =9:a4", "a: Deleted 2, Replaced 4"},
		{"object recreated after the list", "=1:a1 !", "=9: +a10", "a: Deleted 1?, Added 10"},
		{"object recreated after one list and missing in the next", "=1:a1 !", "=9: +a10 =11:", "a: Deleted 1?"},
		{"final state received after the list", "=1:a1 !", "=9: -a10", "a: Deleted 10"},
		{"object listed at its known version", "=1:a1 !", "=9:a1", "a: Replaced 1"},
		{"update of a listed object", "=1:a1 !", "=9:a8 *a10", "a: Replaced 10"},
		{"deletion of a listed but unknown object", "=1:", "=9:a8 -a10", ""},
		{"two items with the same key: the later one", "=1:", "=9:a7,a8", "a: Replaced 8"},
		{"changes older than the list are duplicates", "=1:", "=9:b2 +a5 *b9 -b9", "b: Replaced 2"},
		{"list older than the known state wins", "=1: *a7 !", "=3:a2 *a4", "a: Replaced 4"},
		{"changes after an older list are not duplicates", "=1: *a7 ! -a8", "=3: +a4", "a: Deleted 8, Added 4"},
		{
			"keys of the first list are marked as initial", "+c1", "=1:a1,b1 *b2 +d3",
			"a: Replaced 1^; b: Replaced 2^; d: Added 3",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newFIFOTest(t)
			q.do(c.before)
			q.do(c.commands)
			if got := q.popAll(); got != c.want {
				t.Errorf("after %q, %q yields %q, want %q", c.before, c.commands, got, c.want)
			}
		})
	}
}

func TestReplaceConsidersKeyBeingHandled(t *testing.T) {
	for _, c := range []struct{ name, commands, during, want string }{
		{"addition that the list lacks", "+a1", "=9:", "a: Deleted 1?"},
		{"addition that the list contains", "+a1", "=9:a1", "a: Replaced 1"},
		{"deletion during the addition", "+a1", "-a2", "a: Deleted 2"},
		{"list without the key during its deletion", "+a1 ! -a2", "=9:", ""},
		{"addition in another epoch during the deletion", "+a5 ! -a6", "=1: +a2", "a: Added 2"},
		{"duplicate during the deletion", "+a5 ! -a6", "*a5", ""},
		{"sync during the deletion", "+a5 ! -a6", "~a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newFIFOTest(t)
			q.do(c.commands)
			err := q.fifo.Pop(t.Context(), func(d Deltas[*thing], _ bool) error {
				q.do(c.during)
				return q.keep(d)
			})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(q.popAll(), "^", "")
			if got != c.want {
				t.Errorf("%q while %q is being handled yields %q, want %q", c.during, c.commands, got, c.want)
			}
		})
	}
}

func TestVersionExcludesPendingChanges(t *testing.T) {
	q := newFIFOTest(t)
	for _, step := range []struct {
		do   string
		want listwatch.Version
	}{
		{"", 0},
		{"+a5", 4},
		{"*a7 +b8", 4}, // version 5 of a is not stored yet
		{"@9", 4},
		{"!", 7},
		{"!", 9},
		{"@20", 20},
		{"@10", 20},
		{"~a", 20}, // a sync contains no change
		{"!", 20},
		{"*a21 *b23 =30:c2,a25", 20}, // the items of a list are ordered by key and not by version
		{"! !", 20},
		{"!", 30},
		{"+d31 -d32", 32}, // the changes of an unknown object cancel out
		{"*a33 =10:a9", 0},
		{"!", 0},
		{"!", 10},
		{"=40:", 10},
		{"!", 40},
	} {
		q.do(step.do)
		if got := q.fifo.Version(); got != step.want {
			t.Errorf("after %q the version is %d, want %d", step.do, got, step.want)
		}
	}
	q.do("*x50 *y60 !")
	q.do("=70:y60") // Version was not called since the pop, so Replace must compute it
	if got := q.fifo.Version(); got != 59 {
		t.Errorf("Replace changed the version to %d, want 59", got)
	}
	_ = q.fifo.Pop(t.Context(), func(Deltas[*thing], bool) error {
		if got := q.fifo.Version(); got != 59 {
			t.Errorf("while the last key is being handled the version is %d, want 59", got)
		}
		return nil
	})
}

func TestPendingSyncDoesNotHoldBackVersion(t *testing.T) {
	q := newFIFOTest(t)
	q.do("+a1 ! @9 ~a")
	if got := q.fifo.Version(); got != 9 {
		t.Errorf("with a sync waiting the version is %d, want 9", got)
	}
}

// The store holds an object of an earlier epoch with a higher version. A change in the new
// epoch must be queued nevertheless.
func TestVersionsOfOtherEpochsAreNotCompared(t *testing.T) {
	q := newFIFOTest(t)
	if err := q.store.Put(items("a9")[0]); err != nil {
		t.Fatal(err)
	}
	q.do("*a3")
	if got, want := q.popAll(), "a: Updated 3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHasSyncedMeansHandled(t *testing.T) {
	q := newFIFOTest(t)
	want := func(what string, want bool) {
		t.Helper()
		if q.fifo.HasSynced() != want {
			t.Errorf("%s: HasSynced() = %t", what, !want)
		}
	}
	q.do("+a1 !")
	want("after an addition", false)
	q.do("=3:a1,b2,c3 !")
	want("with keys waiting", false)
	// A second list arrives before the first list is handled. The consumer does not know c and d.
	q.do("=4:d4,b2 -d5")
	want("with a second list", false)
	q.do("!")
	want("with a deletion waiting", false)
	_ = q.fifo.Pop(t.Context(), func(Deltas[*thing], bool) error {
		want("while the last key is being handled", false)
		return errRefused
	})
	want("after the last key", true)
	q.do("=9:a8")
	want("after another list", true)

	q = newFIFOTest(t)
	q.do("=3:")
	want("after an empty list", true)

	q = newFIFOTest(t)
	q.do("=3:a1 =4:b2") // a is dropped, but the sync must still wait for b
	want("with the second list waiting", false)
}

func TestWithoutLookupDeltasKeepTheirTypes(t *testing.T) {
	q := newFIFOTest(t)
	q.fifo.KnownObjects = nil
	q.do("*a1 -b2 +c3 -c4 =9:d5,a6 -d10 ~a")
	q.fifo.Resync()
	const want = "a: Replaced 6^; b: Deleted 2^; c: Deleted 4^; d: Deleted 10^"
	if got := q.popAll(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResyncQueuesEveryKnownObjectOnce(t *testing.T) {
	q := newFIFOTest(t)
	q.do("+a1 +b2 +c3 ! ! ! *b4")
	q.fifo.Resync()
	q.fifo.Resync()
	if got, want := q.popAll(), "b: Updated 4; a: Sync 1; c: Sync 3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPoppedKeysAreNotRequeuedOnFailure(t *testing.T) {
	q := newFIFOTest(t)
	q.do("+a1 +b2")
	if err := q.fifo.Pop(t.Context(), func(Deltas[*thing], bool) error { return errRefused }); !errors.Is(err,
		errRefused) {
		t.Errorf("got %v, want the error of handle", err)
	}
	func() {
		defer func() {
			if r := recover(); r != "no" {
				t.Errorf("recovered %v, want the panic of handle", r)
			}
		}()
		_ = q.fifo.Pop(t.Context(), func(Deltas[*thing], bool) error { panic("no") })
	}()
	q.do("+c3")
	if got, want := q.popAll(), "c: Added 3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPopBlocksUntilWorkOrClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFIFOTest(t)
		ctx, cancel := context.WithCancel(t.Context())
		canceled, popped := make(chan error, 1), make(chan error, 3)
		go func() { canceled <- q.fifo.Pop(ctx, nil) }()
		synctest.Wait()
		cancel()
		if err := <-canceled; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if err := q.fifo.Pop(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled context: got %v, want %v", err, context.Canceled)
		}

		inside, leave := make(chan string), make(chan struct{})
		for range 3 {
			go func() {
				popped <- q.fifo.Pop(t.Context(), func(d Deltas[*thing], _ bool) error {
					inside <- d.Key.Name
					<-leave
					return nil
				})
			}()
		}
		synctest.Wait()
		q.do("+a1 +b2")
		q.fifo.Close()
		for _, want := range []string{"a", "b"} {
			if got := <-inside; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			synctest.Wait() // the other consumers must wait although a key is queued
			select {
			case key := <-inside:
				t.Fatalf("a second handle runs concurrently, for key %s", key)
			case leave <- struct{}{}:
			}
		}
		results := map[error]int{}
		for range 3 {
			results[<-popped]++
		}
		if want := map[error]int{nil: 2, io.EOF: 1}; !maps.Equal(results, want) {
			t.Errorf("got %v, want %v", results, want)
		}
	})
}

func TestInvalidDeltasAndClosedQueueAreRejected(t *testing.T) {
	q := newFIFOTest(t)
	a := items("a1")[0]
	for _, d := range []Delta[*thing]{
		{Type: DeltaAdded},
		{Item: a},
		{Type: DeltaReplaced, Item: a},
		{Type: DeltaSync, Item: a},
		{Type: 77, Item: a},
	} {
		err := q.fifo.Apply(Delta[*thing]{Type: DeltaAdded, Item: a}, d)
		if !errors.Is(err, listwatch.Invalid) || q.fifo.Len() != 0 {
			t.Errorf("%v: got %v and %d queued keys, want Invalid and none", d, err, q.fifo.Len())
		}
	}
	q.fifo.Close()
	for name, err := range map[string]error{
		"Add": q.fifo.Add(a), "Update": q.fifo.Update(a), "Delete": q.fifo.Delete(a), "Replace": q.fifo.Replace(nil, 1),
	} {
		if !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("%s after Close: got %v, want Unavailable", name, err)
		}
	}
}

func TestQueueReleasesMemoryOfLargeList(t *testing.T) {
	q := newFIFOTest(t)
	var all []*Item[*thing]
	for i := range 2 * maxKeptMap {
		all = append(all, thingAt(keyOf(fmt.Sprint(i)), 1, ""))
	}
	if err := q.fifo.Replace(all, 1); err != nil {
		t.Fatal(err)
	}
	q.popAll()
	if q.fifo.queue.entries != nil || q.fifo.queue.freeCount > maxFreeEntries {
		t.Errorf("the empty queue keeps its map (%t) and %d free entries", q.fifo.queue.entries != nil,
			q.fifo.queue.freeCount)
	}
}
