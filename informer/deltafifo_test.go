package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
)

// A tester tells a queue what single words say and shows what comes out of it.
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

// items reads "a5 b6".
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

// do tells the queue words such as "+a5" (add), "*a6" (update), "-a7" (delete), "=9:a5,b6" (replace), "@9" (bookmark), "~a" (sync), and "!" (pop).
func (q *fifoTest) do(words string) {
	q.Helper()
	for word := range strings.FieldsSeq(words) {
		var err error
		rest := word[1:]
		switch word[0] {
		case '+':
			err = q.fifo.Add(items(rest)[0])
		case '*':
			err = q.fifo.Update(items(rest)[0])
		case '-':
			err = q.fifo.Delete(items(rest)[0])
		case '=':
			version, list, _ := strings.Cut(rest, ":")
			err = q.fifo.Replace(items(strings.ReplaceAll(list, ",", " ")), items("v" + version)[0].Version)
		case '@':
			err = q.fifo.Bookmark(items("v" + rest)[0].Version)
		case '~':
			q.fifo.Sync(keyOf(rest))
		case '!':
			q.pop()
		}
		if err != nil {
			q.Fatal(err)
		}
	}
}

// pop takes one key out, stores it and returns what it was: "a: Deleted 5?, Added 7", "?" being an unknown final state and "^" the first list.
func (q *fifoTest) pop() (line string) {
	q.Helper()
	err := q.fifo.Pop(q.Context(), func(d Deltas[*thing], initial bool) error {
		line = show(d, initial)
		return q.keep(d)
	})
	if err != nil {
		q.Fatal(err)
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
			part += " (initial is not the same)"
		}
		parts = append(parts, part)
	}
	line := d.Key.Name + ": " + strings.Join(parts, ", ")
	if initial {
		line += "^"
	}
	return line
}

func (q *fifoTest) keep(d Deltas[*thing]) error {
	last := d.At(d.Len() - 1)
	if last.Type == DeltaDeleted {
		return q.store.Delete(d.Key)
	}
	return q.store.Put(last.Item)
}

// rest takes all out.
func (q *fifoTest) popAll() string {
	q.Helper()
	var lines []string
	for q.fifo.Len() > 0 {
		lines = append(lines, q.pop())
	}
	return strings.Join(lines, "; ")
}

func TestPendingChangesAreCoalescedPerKey(t *testing.T) {
	for _, c := range []struct{ name, before, told, want string }{
		{"an update of what is new is an addition", "", "+a1 *a2 *a3", "a: Added 3"},
		{"an update of what nobody knows is an addition", "", "*a2", "a: Added 2"},
		{"an addition of what is known is an update", "+a1 !", "+a2", "a: Updated 2"},
		{"updates leave the newest", "+a1 !", "*a2 *a3", "a: Updated 3"},
		{"what nobody saw need not be deleted", "", "+a1 *a2 -a3", ""},
		{"what nobody knows need not be deleted", "", "-a3", ""},
		{"a deletion takes the update with it", "+a1 !", "*a2 -a3", "a: Deleted 3"},
		{"another object of the same name", "+a1 !", "-a2 +a3", "a: Deleted 2, Added 3"},
		{"another object, changed", "+a1 !", "-a2 *a3 *a4", "a: Deleted 2, Added 4"},
		{"another object, deleted: who knew the first hears its end", "+a1 !", "-a2 +a3 -a4", "a: Deleted 2"},
		{"and a third", "+a1 !", "-a2 +a3 -a4 +a5", "a: Deleted 2, Added 5"},
		{"keys come in the order in which they first waited", "", "+b1 +a2 *b3", "b: Added 3; a: Added 2"},
		{"what was taken back waits at the end when it comes again", "", "+b1 +a2 -b3 +b4", "a: Added 2; b: Added 4"},
		{"a sync is nothing where something waits", "+a1 !", "*a2 ~a", "a: Updated 2"},
		{"a sync tells what is known", "+a1 !", "~a ~b ~a", "a: Sync 1"},
		{"an update of what is told again is an update", "+a1 !", "~a *a2", "a: Updated 2"},
		{"a deletion of what is told again is a deletion", "+a1 !", "~a -a2", "a: Deleted 2"},
		{"repetitions of what waits", "", "+a1 *a2 +a1 *a2", "a: Added 2"},
		{"repetitions of what is known", "+a1 ! *a2 !", "+a1 *a2", ""},
		{"a deletion that is older than what is known", "+a5 !", "-a4 -a5", ""},
		{"a deletion told twice", "+a1 !", "-a2 -a2", "a: Deleted 2"},
		{"an addition from before the deletion", "+a1 !", "-a3 +a2", "a: Deleted 3"},
		{"an older update of what waits", "", "+a1 *a3 *a2", "a: Added 3"},
		{"an addition from before a deletion that waits behind an update", "+a1 !", "*a2 -a4 +a3", "a: Deleted 4"},
		{"what a bookmark covers is a repetition, also of what is gone", "+a1 ! -a2 ! @2", "+a1", ""},
		{"a resumed stream without a bookmark ends right", "+a1 ! -a2 !", "+a1 -a2", ""},
		{"version zero is none", "+a0 !", "*a0", "a: Updated 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newFIFOTest(t)
			q.do(c.before)
			q.do(c.told)
			if got := q.popAll(); got != c.want {
				t.Errorf("after %q, %q tells %q, want %q", c.before, c.told, got, c.want)
			}
		})
	}
}

func TestReplaceDetectsEveryDeletion(t *testing.T) {
	for _, c := range []struct{ name, before, told, want string }{
		{"of what is known", "=1:a1 ! +b2 !", "=9:b2", "b: Replaced 2; a: Deleted 1?"},
		{"of what is known and waits: the last state seen", "=1:a1 !", "*a2 =9:", "a: Deleted 2?"},
		{"of what only waits: nobody knew it", "=1: +a2", "=9:b3", "b: Replaced 3"},
		{"of what is deleted already: its final state is known", "=1:a1 !", "-a2 =9:", "a: Deleted 2"},
		{"of another object of the same name: the first one's end", "=1:a1 !", "-a2 +a3 =9:", "a: Deleted 2"},
		{"of what was deleted and is there again", "=1:a1 !", "-a2 =9:a4", "a: Deleted 2, Replaced 4"},
		{"of what comes again after the list", "=1:a1 !", "=9: +a10", "a: Deleted 1?, Added 10"},
		{"of what comes again and goes again", "=1:a1 !", "=9: +a10 =11:", "a: Deleted 1?"},
		{"a late final state is taken", "=1:a1 !", "=9: -a10", "a: Deleted 10"},
		{"what is there is told, also at the version that is known", "=1:a1 !", "=9:a1", "a: Replaced 1"},
		{"an update on a replaced object", "=1:a1 !", "=9:a8 *a10", "a: Replaced 10"},
		{"a replaced object that nobody knew, deleted", "=1:", "=9:a8 -a10", ""},
		{"of two items with one key the later one", "=1:", "=9:a7,a8", "a: Replaced 8"},
		{"what the list covers is a repetition", "=1:", "=9:b2 +a5 *b9 -b9", "b: Replaced 2"},
		{"it is the truth also where it is older", "=1: *a7 !", "=3:a2 *a4", "a: Replaced 4"},
		{"and after it older versions count", "=1: *a7 ! -a8", "=3: +a4", "a: Deleted 8, Added 4"},
		{"the first list is marked until it is handled", "+c1", "=1:a1,b1 *b2 +d3", "a: Replaced 1^; b: Replaced 2^; d: Added 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newFIFOTest(t)
			q.do(c.before)
			q.do(c.told)
			if got := q.popAll(); got != c.want {
				t.Errorf("after %q, %q tells %q, want %q", c.before, c.told, got, c.want)
			}
		})
	}
}

func TestReplaceConsidersKeyBeingHandled(t *testing.T) {
	for _, c := range []struct{ name, told, during, want string }{
		{"an addition that is lost", "+a1", "=9:", "a: Deleted 1?"},
		{"an addition that is still there", "+a1", "=9:a1", "a: Replaced 1"},
		{"a deletion while it is added", "+a1", "-a2", "a: Deleted 2"},
		{"a deletion while it is deleted", "+a1 ! -a2", "=9:", ""},
		{"an addition in another epoch while it is deleted", "+a5 ! -a6", "=1: +a2", "a: Added 2"},
		{"a repetition while it is deleted", "+a5 ! -a6", "*a5", ""},
		{"a sync while it is deleted", "+a5 ! -a6", "~a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newFIFOTest(t)
			q.do(c.told)
			err := q.fifo.Pop(t.Context(), func(d Deltas[*thing], _ bool) error {
				q.do(c.during)
				return q.keep(d)
			})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(q.popAll(), "^", "")
			if got != c.want {
				t.Errorf("%q while %q is handled tells %q, want %q", c.during, c.told, got, c.want)
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
		{"*a7 +b8", 4}, // the store lacks a at 5, whatever came later
		{"@9", 4},
		{"!", 7},
		{"!", 9},
		{"@20", 20},
		{"@10", 20},
		{"~a", 20}, // no news
		{"!", 20},
		{"*a21 *b23 =30:c2,a25", 20}, // items of a list are in the order of keys, not of versions
		{"! !", 20},
		{"!", 30},
		{"+d31 -d32", 32}, // nobody knew it
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
	q.do("=70:y60") // nobody asked in between
	if got := q.fifo.Version(); got != 59 {
		t.Errorf("a list made the version %d, want 59 as before it", got)
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

// What the store had before anything was told has versions of another time.
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
	synced := q.fifo.Synced()
	want := func(what string, want bool) {
		t.Helper()
		if q.fifo.HasSynced() != want {
			t.Errorf("%s: synced is %t", what, !want)
		}
		for _, c := range []<-chan struct{}{synced, q.fifo.Synced()} {
			select {
			case <-c:
				if !want {
					t.Errorf("%s: the channel is closed", what)
				}
			default:
				if want {
					t.Errorf("%s: the channel is not closed", what)
				}
			}
		}
	}
	q.do("+a1 !")
	want("after an addition", false)
	q.do("=3:a1,b2,c3 !")
	want("with keys waiting", false)
	q.do("=4:d4,b2 -d5") // a list before the first is handled; nobody knew c and d
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
	synced = q.fifo.Synced()
	want("after an empty list", true)

	q = newFIFOTest(t)
	q.do("=3:a1 =4:b2") // a is dropped, and b must be waited for nevertheless
	synced = q.fifo.Synced()
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
	if err := q.fifo.Pop(t.Context(), func(Deltas[*thing], bool) error { return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("got %v, want the handler's error", err)
	}
	func() {
		defer func() {
			if r := recover(); r != "no" {
				t.Errorf("recovered %v, want the handler's panic", r)
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
			t.Errorf("an ended context: got %v, want %v", err, context.Canceled)
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
			synctest.Wait() // the others wait, though there is work
			select {
			case key := <-inside:
				t.Fatalf("two handlers run at a time: %s", key)
			case leave <- struct{}{}:
			}
		}
		for _, want := range []error{nil, nil, io.EOF} {
			if err := <-popped; !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	})
}

func TestInvalidDeltasAndClosedQueueAreRejected(t *testing.T) {
	q := newFIFOTest(t)
	a := items("a1")[0]
	for _, d := range []Delta[*thing]{{Type: DeltaAdded}, {Item: a}, {Type: DeltaReplaced, Item: a}, {Type: DeltaSync, Item: a}, {Type: 77, Item: a}} {
		err := q.fifo.Apply(Delta[*thing]{Type: DeltaAdded, Item: a}, d)
		if !errors.Is(err, listwatch.Invalid) || q.fifo.Len() != 0 {
			t.Errorf("%v: got %v and %d keys, want Invalid and none", d, err, q.fifo.Len())
		}
	}
	q.fifo.Close()
	for name, err := range map[string]error{
		"Add": q.fifo.Add(a), "Update": q.fifo.Update(a), "Delete": q.fifo.Delete(a), "Replace": q.fifo.Replace(nil, 1),
	} {
		if !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("%s on a closed queue: got %v, want Unavailable", name, err)
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
		t.Errorf("an empty queue keeps its map (%t) and %d entries", q.fifo.queue.entries != nil, q.fifo.queue.freeCount)
	}
}
