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
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
)

// A gate is between a database and its disk.
type gate struct {
	mu      sync.Mutex // not held while a transaction waits
	entered chan struct{}
	leave   chan struct{}
	verdict func(transact func() error) error
	count   int
}

// hold has transactions of s wait at a gate from now on: each sends to entered and receives from leave.
func (s *tester) hold() *gate {
	g := &gate{entered: make(chan struct{}), leave: make(chan struct{})}
	bolt.AroundTransactions(s.db, func(transact func() error) error {
		g.entered <- struct{}{}
		<-g.leave
		return g.decide(transact)
	})
	return g
}

// decide has transactions of s decided about by verdict from now on.
func (s *tester) decide(verdict func(transact func() error) error) *gate {
	g := &gate{verdict: verdict}
	bolt.AroundTransactions(s.db, g.decide)
	return g
}

func (g *gate) decide(transact func() error) error {
	g.mu.Lock()
	verdict := g.verdict
	g.count++
	g.mu.Unlock()
	if verdict == nil {
		return transact()
	}
	return verdict(transact)
}

// say changes what becomes of transactions.
func (g *gate) say(verdict func(transact func() error) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.verdict = verdict
}

// waiting returns when n writes wait for the committer.
func (s *tester) waiting(n int) {
	for bolt.Waiting(s.db) != n {
		runtime.Gosched()
	}
}

// A result is what became of a write.
type result struct {
	object *listwatch.Object
	err    error
}

func (s *tester) goCreate(ctx context.Context, name string) <-chan result {
	done := make(chan result, 1)
	go func() {
		o, err := s.pods.Create(ctx, pod(name, 0))
		done <- result{o, err}
	}()
	return done
}

func TestWritersShareTransactions(t *testing.T) {
	const writers = 64
	s := open(t, bolt.Options{})
	g := s.hold()
	first := s.goCreate(t.Context(), "first")
	<-g.entered
	var others []<-chan result
	for i := range writers {
		others = append(others, s.goCreate(t.Context(), fmt.Sprint("p", i)))
	}
	s.waiting(writers)
	g.leave <- struct{}{}
	<-g.entered
	g.leave <- struct{}{}
	versions := map[listwatch.Version]bool{}
	for _, done := range append(others, first) {
		r := <-done
		if r.err != nil {
			t.Fatal(r.err)
		}
		versions[r.object.Version] = true
	}
	if g.count != 2 || len(versions) != writers+1 {
		t.Errorf("%d transactions and %d versions for %d writes, want 2 transactions", g.count, len(versions), writers+1)
	}
}

// A disk that stood still for a minute is no reason to wait for company for seconds.
func TestNobodyWaitsLongForOthersAfterASlowTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, bolt.Options{})
		slow := 2
		s.decide(func(transact func() error) error {
			if slow--; slow >= 0 {
				time.Sleep(time.Minute) // of the bubble
			}
			return transact()
		})
		one := s.goCreate(t.Context(), "one")
		synctest.Wait()
		two, three := s.goCreate(t.Context(), "two"), s.goCreate(t.Context(), "three")
		synctest.Wait()
		if err := errors.Join((<-one).err, (<-two).err, (<-three).err); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		s.create("four")
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("a write took %v after two that waited for the disk", took)
		}
	})
}

func TestNothingIsShownBeforeItIsOnDisk(t *testing.T) {
	s := open(t, bolt.Options{})
	start := s.db.Version()
	g := s.hold()
	done := s.goCreate(t.Context(), "a")
	<-g.entered
	if o, err := s.pods.Backend().Get(t.Context(), podKey("a")); o != nil || err != nil || len(s.after(start, listwatch.Query{})) > 0 || s.db.Version() != start {
		t.Errorf("got %v, %v at %d, want nothing at %d", o, err, s.db.Version(), start)
	}
	g.leave <- struct{}{}
	if r := <-done; r.err != nil || mustGet(t, s, "a") != r.object {
		t.Errorf("got %v, want the object that Get returns", r)
	}
}

func TestFailedTransactionFailsItsWritesAlone(t *testing.T) {
	s := open(t, bolt.Options{})
	before := s.create("a")
	g := s.decide(func(func() error) error { return syscall.ENOSPC })
	for range 3 {
		_, err := s.pods.Replace(t.Context(), podKey("a"), pod("a", 1))
		want := "there is no space left for " + s.path
		if !errors.Is(err, listwatch.Unavailable) || listwatch.AsError(err).Message != want || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v, want code Unavailable and %q", err, want)
		}
	}
	if mustGet(t, s, "a") != before || s.db.Version() != before.Version {
		t.Errorf("at %d, want what was written before, at %d", s.db.Version(), before.Version)
	}
	g.say(nil)
	after := s.update("a", 2)
	want := []string{line(listwatch.Modified, after)}
	for range 2 {
		if diff := cmp.Diff(want, s.after(before.Version, listwatch.Query{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.reopen()
	}
}

// The last step of a transaction may fail when everything is in the file.
func TestFailedTransactionThatIsInTheFileIsTakenBack(t *testing.T) {
	s := open(t, bolt.Options{HistoryBytes: 1})
	for i := range 5 { // with history to trim
		s.create(fmt.Sprint("a", i))
		s.update(fmt.Sprint("a", i), 1)
	}
	state := s.state(listwatch.Query{})
	last := s.db.Version()
	g := s.decide(func(transact func() error) error { return errors.Join(syscall.EIO, transact()) })
	_, createErr := s.pods.Create(t.Context(), pod("b", 0))
	_, deleteErr := s.pods.Delete(t.Context(), podKey("a0"), store.Preconditions{})
	if !errors.Is(createErr, listwatch.Unavailable) || !errors.Is(deleteErr, listwatch.Unavailable) {
		t.Errorf("got %v and %v, want code Unavailable", createErr, deleteErr)
	}
	if diff := cmp.Diff(state, s.state(listwatch.Query{})); diff != "" {
		t.Errorf("after the failure (-want +got):\n%s", diff)
	}
	g.say(nil)
	c := s.create("c")
	if c.Version <= last+2 {
		t.Errorf("got version %d, want one after those of the failed writes, %d and %d", c.Version, last+1, last+2)
	}
	want := s.state(listwatch.Query{})
	s.reopen()
	if diff := cmp.Diff(want, s.state(listwatch.Query{})); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{line(listwatch.Added, c)}, s.after(last+2, listwatch.Query{})); diff != "" {
		t.Errorf("events after a restart (-want +got):\n%s", diff)
	}
}

// Where the process ends before that could be taken back, the write has happened, under a version that nothing else has.
func TestFailedTransactionThatIsInTheFileMayBeThereAfterARestart(t *testing.T) {
	s := open(t, bolt.Options{})
	last := s.create("a").Version
	s.decide(func(transact func() error) error { return errors.Join(syscall.EIO, transact()) })
	if _, err := s.pods.Create(t.Context(), pod("b", 0)); err == nil {
		t.Fatal("want an error")
	}
	s.reopen()
	b := mustGet(t, s, "b")
	want := []string{line(listwatch.Added, b), line(listwatch.Added, s.create("c"))}
	if diff := cmp.Diff(want, s.after(last, listwatch.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a failed transaction forgot is forgotten, if it is in the file: the next one, which looks at fewer records, must not have history
// begin before that again.
func TestFailedTransactionThatIsInTheFileHasForgottenForGood(t *testing.T) {
	const objects = 100
	s := open(t, bolt.Options{HistoryBytes: -1})
	bolt.NoSync(s.db)
	for i := range 2 * objects {
		if name := fmt.Sprint("a", i%objects); i < objects {
			s.create(name)
		} else {
			s.update(name, i)
		}
	}
	s.options.HistoryBytes = 1
	s.reopen()
	entered, full := make(chan struct{}), make(chan struct{})
	var last <-chan result
	var data []byte
	count := 0
	s.decide(func(transact func() error) error {
		switch count++; count {
		case 1:
			close(entered)
			<-full
		case 2:
			last = s.goCreate(t.Context(), "last")
			s.waiting(1)
			return errors.Join(syscall.EIO, transact())
		case 3:
			defer func() { data = readFile(t, s.path) }()
		}
		return transact()
	})
	first := s.goCreate(t.Context(), "first")
	<-entered
	var failed []<-chan result
	for i := range objects {
		failed = append(failed, s.goCreate(t.Context(), fmt.Sprint("b", i)))
	}
	s.waiting(objects)
	close(full)
	for _, f := range failed {
		if r := <-f; r.err == nil {
			t.Fatal("want an error")
		}
	}
	if r := errors.Join((<-first).err, (<-last).err); r != nil {
		t.Fatal(r)
	}
	want := s.state(listwatch.Query{})
	s.close()
	s.path = writeFile(t, data) // as if the process had been killed after the third
	s.open()
	if diff := cmp.Diff(want, s.state(listwatch.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSecondWriteToAnObjectIsJudgedByWhatIsOnDisk(t *testing.T) {
	for _, fail := range []bool{false, true} {
		s := open(t, bolt.Options{})
		g := s.hold()
		blocker := s.goCreate(t.Context(), "blocker")
		<-g.entered
		first := s.goCreate(t.Context(), "a")
		s.waiting(1)
		second := s.goCreate(t.Context(), "a")
		s.waiting(2)
		g.leave <- struct{}{}
		<-g.entered // the first alone
		if r := <-blocker; r.err != nil {
			t.Fatal(r.err)
		}
		if fail {
			g.say(func(func() error) error { return syscall.EIO })
		}
		g.leave <- struct{}{}
		if r := <-first; (r.err != nil) != fail {
			t.Errorf("the first: %v", r.err)
		}
		if fail {
			<-g.entered
			g.say(nil)
			g.leave <- struct{}{}
		}
		if r := <-second; fail && r.err != nil || !fail && !errors.Is(r.err, listwatch.AlreadyExists) {
			t.Errorf("the second, where the first failed: %v: %v", fail, r.err)
		}
		bolt.AroundTransactions(s.db, func(transact func() error) error { return transact() })
	}
}

func TestContextThatEndsInTheQueueWithdrawsTheWrite(t *testing.T) {
	s := open(t, bolt.Options{})
	g := s.hold()
	first := s.goCreate(t.Context(), "a")
	<-g.entered
	ctx, cancel := context.WithCancel(t.Context())
	second := s.goCreate(ctx, "b")
	s.waiting(1)
	cancel()
	if r := <-second; r.err != context.Canceled {
		t.Errorf("got %v, want the error of the context", r.err)
	}
	g.leave <- struct{}{}
	last := (<-first).object.Version
	s.close() // works the queue off
	if s.db.Version() != last || len(s.state(listwatch.Query{})) != 2 {
		t.Errorf("at %d with %v, want a alone at %d", s.db.Version(), s.state(listwatch.Query{}), last)
	}
}

func TestContextThatEndsOnTheWayToTheDiskLeavesTheWriteThere(t *testing.T) {
	s := open(t, bolt.Options{})
	start := s.db.Version()
	g := s.hold()
	ctx, cancel := context.WithCancel(t.Context())
	done := s.goCreate(ctx, "a")
	<-g.entered
	cancel()
	if r := <-done; r.err != context.Canceled {
		t.Errorf("got %v, want the error of the context", r.err)
	}
	g.leave <- struct{}{}
	s.close()
	if diff := cmp.Diff([]string{line(listwatch.Added, mustGet(t, s, "a"))}, s.after(start, listwatch.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDamageFoundByAWriteEndsWritingAndNotReading(t *testing.T) {
	s := open(t, bolt.Options{})
	o := s.create("a")
	s.decide(func(func() error) error {
		bolt.KeepLocks(s.db)
		panic("page 7: unexpected page type")
	})
	for range 2 {
		if _, err := s.pods.Create(t.Context(), pod("b", 0)); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("got %v, want code Corrupt", err)
		}
		s.decide(func(transact func() error) error { return transact() })
	}
	if mustGet(t, s, "a") != o {
		t.Error("what was there can't be read any more")
	}
	if err := s.db.Shrink(); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("Shrink: got %v, want code Corrupt", err)
	}
	s.reopen() // the locks are nobody's trouble
	s.create("b")
}
