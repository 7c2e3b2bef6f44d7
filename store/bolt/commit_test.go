package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store/bolt"
)

// A txHook controls the transactions of a database.
type txHook struct {
	mu      sync.Mutex // not held during a transaction
	entered chan struct{}
	proceed chan struct{}
	outcome func(transact func() error) error // if nil, transactions are performed normally
	count   int
}

// blockTransactions makes each transaction of t send to entered, and then wait until it receives
// from proceed.
func (t *testDB) blockTransactions() *txHook {
	h := &txHook{entered: make(chan struct{}), proceed: make(chan struct{})}
	bolt.WrapTransactions(t.db, func(transact func() error) error {
		h.entered <- struct{}{}
		<-h.proceed
		return h.transact(transact)
	})
	return h
}

// wrapTransactions lets outcome determine the result of each transaction of t.
func (t *testDB) wrapTransactions(outcome func(transact func() error) error) *txHook {
	h := &txHook{outcome: outcome}
	bolt.WrapTransactions(t.db, h.transact)
	return h
}

func (h *txHook) transact(transact func() error) error {
	h.mu.Lock()
	outcome := h.outcome
	h.count++
	h.mu.Unlock()
	if outcome == nil {
		return transact()
	}
	return outcome(transact)
}

func (h *txHook) setOutcome(outcome func(transact func() error) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outcome = outcome
}

// awaitQueued waits until n writes wait for the committer.
func (t *testDB) awaitQueued(n int) {
	for bolt.QueuedWrites(t.db) != n {
		runtime.Gosched()
	}
}

// A result holds the return values of a write.
type result struct {
	object *listwatch.Object
	err    error
}

// startCreate creates a pod on another goroutine.
func (t *testDB) startCreate(ctx context.Context, name string) <-chan result {
	done := make(chan result, 1)
	go func() {
		o, err := t.pods.Create(ctx, pod(name, 0))
		done <- result{o, err}
	}()
	return done
}

func TestWritersShareTransactions(t *testing.T) {
	const writers = 64
	s := open(t, bolt.Options{})
	hook := s.blockTransactions()
	first := s.startCreate(t.Context(), "first")
	<-hook.entered
	var others []<-chan result
	for i := range writers {
		others = append(others, s.startCreate(t.Context(), fmt.Sprint("p", i)))
	}
	s.awaitQueued(writers)
	hook.proceed <- struct{}{}
	<-hook.entered
	hook.proceed <- struct{}{}
	versions := map[listwatch.Version]bool{}
	for _, done := range append(others, first) {
		r := <-done
		if r.err != nil {
			t.Fatal(r.err)
		}
		versions[r.object.Version] = true
	}
	if hook.count != 2 || len(versions) != writers+1 {
		t.Errorf("%d transactions and %d versions for %d writes, want 2 transactions", hook.count, len(versions),
			writers+1)
	}
}

// After a slow transaction the committer still waits only briefly for more writers, even if
// the transaction took a minute.
func TestSlowTransactionDoesNotDelayTheNextWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, bolt.Options{})
		slow := 2
		s.wrapTransactions(func(transact func() error) error {
			if slow--; slow >= 0 {
				time.Sleep(time.Minute)
			}
			return transact()
		})
		one := s.startCreate(t.Context(), "one")
		synctest.Wait()
		two, three := s.startCreate(t.Context(), "two"), s.startCreate(t.Context(), "three")
		synctest.Wait()
		if err := errors.Join((<-one).err, (<-two).err, (<-three).err); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		s.create("four")
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("a write took %v after two slow transactions", took)
		}
	})
}

func TestWritesAreInvisibleUntilTheyAreOnDisk(t *testing.T) {
	s := open(t, bolt.Options{})
	start := s.db.Version()
	hook := s.blockTransactions()
	done := s.startCreate(t.Context(), "a")
	<-hook.entered
	if o, err := s.pods.Backend().Get(t.Context(), podKey("a")); o != nil || err != nil ||
		len(s.eventsAfter(start, listwatch.Query{})) > 0 || s.db.Version() != start {
		t.Errorf("got %v, %v at %d, want no object at version %d", o, err, s.db.Version(), start)
	}
	hook.proceed <- struct{}{}
	if r := <-done; r.err != nil || s.get("a") != r.object {
		t.Errorf("got %v, want the object that Get returns", r)
	}
}

func TestReadyDoesNotWaitForATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, bolt.Options{})
		hook := s.blockTransactions()
		done := s.startCreate(t.Context(), "a")
		<-hook.entered
		if err := s.db.Ready(t.Context()); err != nil {
			t.Errorf("during a transaction: got %v, want nil", err)
		}
		time.Sleep(bolt.StuckAfter + time.Second)
		if err := s.db.Ready(t.Context()); err == nil || kubestatus.Of(err).Code != 503 {
			t.Errorf("during a transaction of 6 seconds: got %v, want an error of status 503", err)
		}
		hook.proceed <- struct{}{}
		if r := <-done; r.err != nil {
			t.Error(r.err)
		}
		if err := s.db.Ready(t.Context()); err != nil {
			t.Errorf("after the transaction: got %v", err)
		}
	})
}

func TestFailedTransactionFailsOnlyItsWrites(t *testing.T) {
	s := open(t, bolt.Options{})
	before := s.create("a")
	hook := s.wrapTransactions(func(func() error) error { return syscall.ENOSPC })
	for range 3 {
		_, err := s.pods.Replace(t.Context(), podKey("a"), pod("a", 1))
		want := "there is no space left for the data file"
		if !errors.Is(err, listwatch.Unavailable) || listwatch.AsError(err).Message != want ||
			!errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v, want code Unavailable and %q", err, want)
		}
	}
	if got := s.get("a"); got != before || s.db.Version() != before.Version {
		t.Errorf("got %s in a database at version %d, want the first object %s at version %d",
			got.Data, s.db.Version(), before.Data, before.Version)
	}
	hook.setOutcome(nil)
	after := s.update("a", 2)
	want := []string{line(listwatch.Modified, after)}
	for range 2 {
		if diff := cmp.Diff(want, s.eventsAfter(before.Version, listwatch.Query{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.reopen()
	}
}

// The last step of a transaction can fail after all data was written to the file.
func TestFailedButWrittenTransactionIsReverted(t *testing.T) {
	s := open(t, bolt.Options{History: listwatch.Retention{Bytes: 1}})
	for i := range 5 { // creates history to trim
		s.create(fmt.Sprint("a", i))
		s.update(fmt.Sprint("a", i), 1)
	}
	state := s.list(listwatch.Query{})
	last := s.db.Version()
	hook := s.wrapTransactions(func(transact func() error) error { return errors.Join(syscall.EIO, transact()) })
	_, createErr := s.pods.Create(t.Context(), pod("b", 0))
	_, deleteErr := s.pods.Delete(t.Context(), podKey("a0"), listwatch.Preconditions{})
	if !errors.Is(createErr, listwatch.Unavailable) || !errors.Is(deleteErr, listwatch.Unavailable) {
		t.Errorf("got %v and %v, want code Unavailable", createErr, deleteErr)
	}
	if diff := cmp.Diff(state, s.list(listwatch.Query{})); diff != "" {
		t.Errorf("after the failure (-want +got):\n%s", diff)
	}
	hook.setOutcome(nil)
	c := s.create("c")
	if c.Version <= last+2 {
		t.Errorf("got version %d, want one after the versions of the failed writes, %d and %d", c.Version,
			last+1, last+2)
	}
	want := s.list(listwatch.Query{})
	s.reopen()
	if diff := cmp.Diff(want, s.list(listwatch.Query{})); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{line(listwatch.Added, c)}, s.eventsAfter(last+2, listwatch.Query{})); diff != "" {
		t.Errorf("events after a restart (-want +got):\n%s", diff)
	}
}

// If the process ends before the failed transaction is reverted, its write exists after the
// restart. No other write may have the same version.
func TestFailedButWrittenTransactionCanReappear(t *testing.T) {
	s := open(t, bolt.Options{})
	last := s.create("a").Version
	s.wrapTransactions(func(transact func() error) error { return errors.Join(syscall.EIO, transact()) })
	if _, err := s.pods.Create(t.Context(), pod("b", 0)); err == nil {
		t.Fatal("want an error")
	}
	s.reopen()
	b := s.get("b")
	want := []string{line(listwatch.Added, b), line(listwatch.Added, s.create("c"))}
	if diff := cmp.Diff(want, s.eventsAfter(last, listwatch.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A failed transaction may have raised the floor in the file. The next transaction examines
// fewer records, so it reaches a lower floor, which it must not write.
func TestFailedButWrittenTrimIsNotUndone(t *testing.T) {
	const objects = 100
	s := open(t, bolt.Options{History: listwatch.Retention{Bytes: -1}})
	bolt.DisableSync(s.db)
	for i := range 2 * objects {
		if name := fmt.Sprint("a", i%objects); i < objects {
			s.create(name)
		} else {
			s.update(name, i)
		}
	}
	s.options.History.Bytes = 1
	s.reopen()
	entered, full := make(chan struct{}), make(chan struct{})
	var last <-chan result
	var data []byte
	count := 0
	s.wrapTransactions(func(transact func() error) error {
		switch count++; count {
		case 1:
			close(entered)
			<-full
		case 2:
			last = s.startCreate(t.Context(), "last")
			s.awaitQueued(1)
			return errors.Join(syscall.EIO, transact())
		case 3:
			defer func() { data = readFile(t, s.path) }()
		}
		return transact()
	})
	first := s.startCreate(t.Context(), "first")
	<-entered
	var failed []<-chan result
	for i := range objects {
		failed = append(failed, s.startCreate(t.Context(), fmt.Sprint("b", i)))
	}
	s.awaitQueued(objects)
	close(full)
	for _, f := range failed {
		if r := <-f; r.err == nil {
			t.Fatal("want an error")
		}
	}
	if r := errors.Join((<-first).err, (<-last).err); r != nil {
		t.Fatal(r)
	}
	want := s.list(listwatch.Query{})
	s.close()
	s.path = writeFile(t, data) // simulates that the process was killed after the third transaction
	s.open()
	if diff := cmp.Diff(want, s.list(listwatch.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSecondWriteToAnObjectWaitsForTheFirst(t *testing.T) {
	for _, fail := range []bool{false, true} {
		s := open(t, bolt.Options{})
		hook := s.blockTransactions()
		blocker := s.startCreate(t.Context(), "blocker")
		<-hook.entered
		first := s.startCreate(t.Context(), "a")
		s.awaitQueued(1)
		second := s.startCreate(t.Context(), "a")
		s.awaitQueued(2)
		hook.proceed <- struct{}{}
		<-hook.entered // this transaction contains only the first write
		if r := <-blocker; r.err != nil {
			t.Fatal(r.err)
		}
		if fail {
			hook.setOutcome(func(func() error) error { return syscall.EIO })
		}
		hook.proceed <- struct{}{}
		if r := <-first; (r.err != nil) != fail {
			t.Errorf("the first write: %v", r.err)
		}
		if fail {
			<-hook.entered
			hook.setOutcome(nil)
			hook.proceed <- struct{}{}
		}
		if r := <-second; fail && r.err != nil || !fail && !errors.Is(r.err, listwatch.AlreadyExists) {
			t.Errorf("the second write, first failed=%v: %v", fail, r.err)
		}
		bolt.WrapTransactions(s.db, func(transact func() error) error { return transact() })
	}
}

func TestContextEndInTheQueueCancelsTheWrite(t *testing.T) {
	s := open(t, bolt.Options{})
	hook := s.blockTransactions()
	first := s.startCreate(t.Context(), "a")
	<-hook.entered
	ctx, cancel := context.WithCancel(t.Context())
	second := s.startCreate(ctx, "b")
	s.awaitQueued(1)
	cancel()
	if r := <-second; r.err != context.Canceled {
		t.Errorf("got %v, want the error of the context", r.err)
	}
	hook.proceed <- struct{}{}
	last := (<-first).object.Version
	s.close() // Close commits the queued writes
	if s.db.Version() != last || len(s.list(listwatch.Query{})) != 2 {
		t.Errorf("version %d with %v, want only a, at version %d", s.db.Version(), s.list(listwatch.Query{}), last)
	}
}

func TestContextEndDuringCommitKeepsTheWrite(t *testing.T) {
	s := open(t, bolt.Options{})
	start := s.db.Version()
	hook := s.blockTransactions()
	ctx, cancel := context.WithCancel(t.Context())
	done := s.startCreate(ctx, "a")
	<-hook.entered
	cancel()
	if r := <-done; r.err != context.Canceled {
		t.Errorf("got %v, want the error of the context", r.err)
	}
	hook.proceed <- struct{}{}
	s.close()
	if diff := cmp.Diff([]string{line(listwatch.Added, s.get("a"))},
		s.eventsAfter(start, listwatch.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDamageStopsWritesButNotReads(t *testing.T) {
	s := open(t, bolt.Options{})
	o := s.create("a")
	s.wrapTransactions(func(func() error) error {
		bolt.LeakLocks(s.db)
		panic("page 7: unexpected page type")
	})
	for range 2 {
		if _, err := s.pods.Create(t.Context(), pod("b", 0)); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("got %v, want code Corrupt", err)
		}
		s.wrapTransactions(func(transact func() error) error { return transact() })
	}
	if s.get("a") != o {
		t.Error("the stored object cannot be read any more")
	}
	if err := s.db.Shrink(); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("Shrink: got %v, want code Corrupt", err)
	}
	s.reopen() // works although bbolt still holds its locks
	s.create("b")
}
