package bolt_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
)

func TestMain(m *testing.M) {
	// These tests wait for the disk, so the default number of rapid checks is lower here.
	// The flag -rapid.checks overrides it.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	leaktest.Main(m)
}

var podSpec = store.CollectionSpec{Kind: "Pod", Namespaced: true, Fields: []string{"spec.nodeName"}}

// A testDB is a database with a collection of pods. Tests can close it and open it again.
type testDB struct {
	testing.TB
	path    string
	options bolt.Options
	db      *bolt.DB
	pods    *store.Collection
}

func open(t testing.TB, o bolt.Options) *testDB {
	t.Helper()
	s := &testDB{TB: t, path: filepath.Join(t.TempDir(), "test.db"), options: o}
	s.open()
	t.Cleanup(s.close)
	return s
}

func (t *testDB) open() {
	t.Helper()
	var err error
	if t.db, err = bolt.Open(t.path, t.options); err != nil {
		t.Fatal(err)
	}
	if t.pods, err = t.db.Collection(podSpec); err != nil {
		t.Fatal(err)
	}
}

func (t *testDB) close() {
	t.Helper()
	if t.db == nil {
		return // Open has failed
	}
	if err := t.db.Close(); err != nil {
		t.Error(err)
	}
}

func (t *testDB) reopen() {
	t.Helper()
	t.close()
	t.open()
}

func pod(name string, i int) []byte {
	return fmt.Appendf(nil,
		`{"metadata":{"name":%q,"namespace":"n","labels":{"app":"a%d"}},"spec":{"nodeName":"n%d"},"i":%d}`, name,
		i%2, i%3, i)
}

func podKey(name string) listwatch.Key { return listwatch.Key{Namespace: "n", Name: name} }

func (t *testDB) create(name string) *listwatch.Object {
	t.Helper()
	return testkit.Must(t.pods.Create(t.Context(), pod(name, 0)))(t)
}

func (t *testDB) update(name string, i int) *listwatch.Object {
	t.Helper()
	return testkit.Must(t.pods.Replace(t.Context(), podKey(name), pod(name, i)))(t)
}

func (t *testDB) delete(name string) *listwatch.Object {
	t.Helper()
	return testkit.Must(t.pods.Delete(t.Context(), podKey(name), listwatch.Preconditions{}))(t)
}

// eventsAfter returns the events after v up to the newest version, each as a line.
func (t *testDB) eventsAfter(v listwatch.Version, q listwatch.Query) (lines []string) {
	t.Helper()
	q.Start, q.Version = listwatch.StartAt, v
	w, err := t.pods.Watch(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for events := make([]listwatch.Event, 16); ; {
		n, err := w.(listwatch.Poller).Poll(events)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return lines
		}
		for _, e := range events[:n] {
			lines = append(lines, line(e.Type, e.Object))
		}
	}
}

func line(e listwatch.EventType, o *listwatch.Object) string {
	return fmt.Sprintf("%v %v %v %v %v %s", e, o.Key, o.Version, o.Labels, o.Fields, o.Data)
}

// list returns the listed objects and the version of the list, each as a line.
func (t *testDB) list(q listwatch.Query) (lines []string) {
	t.Helper()
	page, err := t.pods.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Items {
		lines = append(lines, line(listwatch.Added, o))
	}
	return append(lines, "at "+page.Version.String())
}

// writeSome creates, updates and deletes objects, and returns the versions of the writes.
func (t *testDB) writeSome() (versions []listwatch.Version) {
	t.Helper()
	for i := range 4 {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		for _, o := range []*listwatch.Object{t.create(a), t.update(a, 1), t.create(b), t.update(b, 2), t.delete(a)} {
			versions = append(versions, o.Version)
		}
	}
	return versions
}

func TestRestartKeepsStateAndHistory(t *testing.T) {
	s := open(t, bolt.Options{})
	start, epoch := s.db.Version(), s.db.Epoch()
	versions := append([]listwatch.Version{start}, s.writeSome()...)
	readEverything := func() (seen [][]string) {
		for _, v := range versions {
			seen = append(seen, s.eventsAfter(v, listwatch.Query{}),
				s.list(listwatch.Query{Start: listwatch.StartAt, Match: listwatch.MatchExact, Version: v}))
		}
		app, _ := listwatch.ParseLabelSelector("app=a1")
		node, _ := listwatch.ParseFieldSelector("spec.nodeName=n1")
		return append(seen,
			s.eventsAfter(start, listwatch.Query{Selection: listwatch.Selection{Labels: app}}),
			s.eventsAfter(start, listwatch.Query{Selection: listwatch.Selection{Fields: node}}))
	}
	before := readEverything()
	for range 3 {
		s.reopen()
		if diff := cmp.Diff(before, readEverything()); diff != "" {
			t.Fatalf("after a restart (-want +got):\n%s", diff)
		}
	}
	if s.db.Epoch() != epoch || s.db.Version() != versions[len(versions)-1] {
		t.Errorf("got epoch %q at version %d, want %q at %d", s.db.Epoch(), s.db.Version(), epoch,
			versions[len(versions)-1])
	}
	if o := s.create("new"); o.Version != versions[len(versions)-1]+1 {
		t.Errorf("the next write has version %d, want one more than %d", o.Version, versions[len(versions)-1])
	}
}

func TestWatchResumesAfterRestart(t *testing.T) {
	s := open(t, bolt.Options{})
	last := s.create("a").Version
	s.reopen()
	want := []string{line(listwatch.Modified, s.update("a", 1)), line(listwatch.Deleted, s.delete("a"))}
	if diff := cmp.Diff(want, s.eventsAfter(last, listwatch.Query{})); diff != "" {
		t.Errorf("the events after the restart (-want +got):\n%s", diff)
	}
}

func TestCollectionsShareOneCounterAcrossRestarts(t *testing.T) {
	s := open(t, bolt.Options{StartVersion: 7})
	nodes, err := s.db.Collection(store.CollectionSpec{Kind: "Node"})
	if err != nil {
		t.Fatal(err)
	}
	s.create("a") // version 8
	node, err := nodes.Create(t.Context(), []byte(`{"metadata":{"name":"x"}}`))
	if err != nil || node.Version != 9 {
		t.Fatalf("got %v, %v, want version 9", node, err)
	}
	s.reopen() // reopens the database without declaring nodes
	if o := s.create("b"); o.Version != 10 {
		t.Errorf("got version %d, want 10", o.Version)
	}
	s.reopen()
	if nodes, err = s.db.Collection(store.CollectionSpec{Kind: "Node"}); err != nil {
		t.Fatal(err)
	}
	w, err := nodes.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	events := make([]listwatch.Event, 2)
	if n, err := w.Next(t.Context(), events); n != 1 || err != nil || events[0].Version != 9 {
		t.Errorf("got %d events, %v, of %d; want the one at version 9", n, err, events[0].Version)
	}
}

// The history of a collection without writes starts at the version at which it was first
// declared.
func TestWatchOfAnEmptyCollectionResumes(t *testing.T) {
	s := open(t, bolt.Options{StartVersion: 7})
	if _, err := s.db.Collection(store.CollectionSpec{Kind: "Node"}); err != nil {
		t.Fatal(err)
	}
	s.create("a")
	s.reopen()
	nodes, err := s.db.Collection(store.CollectionSpec{Kind: "Node"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := nodes.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if n, err := w.(listwatch.Poller).Poll(make([]listwatch.Event, 1)); n != 0 || err != nil {
		t.Errorf("got %d events, %v; want none", n, err)
	}
}

func TestCollectionCannotBeRedeclared(t *testing.T) {
	s := open(t, bolt.Options{})
	if _, err := s.db.Collection(podSpec); !errors.Is(err, listwatch.AlreadyExists) {
		t.Errorf("got %v, want code AlreadyExists", err)
	}
	s.create("a")
	s.close()
	var err error
	if s.db, err = bolt.Open(s.path, s.options); err != nil {
		t.Fatal(err)
	}
	_, err = s.db.Collection(store.CollectionSpec{Kind: "Pod"})
	want := "the file has pods as Pod of v1 with namespaces, but it is declared as Pod of v1 without namespaces"
	if !errors.Is(err, listwatch.Invalid) || listwatch.AsError(err).Message != want {
		t.Errorf("got %v, want %q", err, want)
	}
	s.pods = testkit.Must(s.db.Collection(podSpec))(t)
	if lines := s.list(listwatch.Query{}); len(lines) != 2 {
		t.Errorf("got %q, want the stored pod and the version", lines)
	}
}

func TestEmptyCollectionCanBeRedeclared(t *testing.T) {
	s := open(t, bolt.Options{})
	start := s.db.Version()
	s.close()
	var err error
	if s.db, err = bolt.Open(s.path, s.options); err != nil {
		t.Fatal(err)
	}
	if _, err = s.db.Collection(store.CollectionSpec{Kind: "Pod"}); err != nil {
		t.Fatalf("got %v, want pods without namespaces", err)
	}
	s.reopen()
	want := []string{line(listwatch.Added, s.create("a"))}
	s.reopen()
	if diff := cmp.Diff(want, s.eventsAfter(start, listwatch.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCompactDropsHistoryFromTheFile(t *testing.T) {
	s := open(t, bolt.Options{})
	before := s.create("a").Version
	s.update("a", 1)
	now := s.delete("a").Version
	s.create("b")
	state := s.list(listwatch.Query{})
	s.db.Compact()
	for range 2 {
		_, err := s.pods.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: now})
		if !errors.Is(err, listwatch.Expired) {
			t.Errorf("a watch from %d: got %v, want code Expired", before, err)
		}
		if diff := cmp.Diff(state, s.list(listwatch.Query{})); diff != "" {
			t.Errorf("the state (-want +got):\n%s", diff)
		}
		s.create("c") // this write also trims the rest of the history from the file
		s.delete("c")
		s.db.Compact()
		s.create("c")
		s.delete("c")
		state[len(state)-1] = "at " + s.db.Version().String()
		if n := bolt.CountRecords(s.db, "pods"); n > 4 {
			t.Errorf("the file has %d records, want the records of b and c", n)
		}
		s.reopen()
	}
}

func TestHistoryIsLimitedByTheOptions(t *testing.T) {
	for name, c := range map[string]struct {
		options bolt.Options
		isKept  bool
	}{
		"age passed":   {bolt.Options{History: listwatch.Retention{Age: time.Nanosecond}}, false},
		"default":      {bolt.Options{}, true},
		"no limit":     {bolt.Options{History: listwatch.Retention{Age: -1, Bytes: -1}}, true},
		"bytes passed": {bolt.Options{History: listwatch.Retention{Age: -1, Bytes: 1}}, false},
	} {
		s := open(t, c.options)
		start := s.create("a").Version
		for i := range 50 {
			s.update("a", i+1)
		}
		records := bolt.CountRecords(s.db, "pods")
		if kept := records == 51; kept != c.isKept || !kept && records > 5 {
			t.Errorf("%s: the file has %d records of 51 writes", name, records)
		}
		s.reopen()
		w, err := s.pods.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: start})
		if errors.Is(err, listwatch.Expired) == c.isKept {
			t.Errorf("%s: got %v after a restart, want Expired only if the history is limited", name, err)
		}
		if err == nil {
			_ = w.Close()
		}
	}
}

// A very long history is trimmed over many transactions, so that no single write has to
// wait for all of it.
func TestTrimmingIsSpreadOverTransactions(t *testing.T) {
	const writers, each = 50, 100
	// the number of records that one transaction may delete; see trim.go
	const withWrite, idle = 2 + 64, 4096
	s := open(t, bolt.Options{History: listwatch.Retention{Age: -1, Bytes: -1}})
	bolt.DisableSync(s.db)
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			s.create(fmt.Sprint("a", w))
			for i := range each {
				s.update(fmt.Sprint("a", w), i+1)
			}
		})
	}
	done.Wait()
	s.options.History.Bytes = 1
	s.reopen()
	records := make(chan int)
	bolt.WrapTransactions(s.db, func(transact func() error) error {
		err := transact()
		records <- bolt.CountRecords(s.db, "pods")
		return err
	})
	last, limit := bolt.CountRecords(s.db, "pods"), withWrite
	b := s.startCreate(t.Context(), "b")
	for last > writers+1 {
		now := <-records
		if now < last-limit {
			t.Fatalf("one transaction left %d of %d records, want at most %d deleted", now, last, limit)
		}
		last, limit = now, idle
	}
	if r := <-b; r.err != nil {
		t.Fatal(r.err)
	}
}

// Clients that have seen writes made after the backup must notice that these writes are
// lost, even if the clients do not support epochs.
func TestRestoredBackupMakesClientsListAgain(t *testing.T) {
	s := open(t, bolt.Options{})
	s.writeSome()
	state := s.list(listwatch.Query{})
	before, epoch := s.db.Version(), s.db.Epoch()
	copied := readFile(t, s.path)
	lost := s.create("lost").Version
	s.close()
	if err := os.WriteFile(s.path, copied, 0o600); err != nil {
		t.Fatal(err)
	}
	s.options.RestoredFromBackup = true
	s.open()
	restored := s.db.Version()
	if s.db.Epoch() == epoch || restored <= lost {
		t.Errorf("epoch %q at %d, want another epoch than %q and a version after %d", s.db.Epoch(), restored,
			epoch, lost)
	}
	s.options.RestoredFromBackup = false
	for range 2 {
		for _, v := range []listwatch.Version{before, lost, restored - 1} {
			if _, err := s.pods.Watch(t.Context(),
				listwatch.Query{Start: listwatch.StartAt, Version: v}); !errors.Is(err, listwatch.Expired) {
				t.Errorf("a watch from %d: got %v, want code Expired", v, err)
			}
		}
		state[len(state)-1] = "at " + restored.String()
		if diff := cmp.Diff(state, s.list(listwatch.Query{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.reopen()
	}
	if o := s.create("new"); o.Version != restored+1 {
		t.Errorf("the first write has version %d, want %d", o.Version, restored+1)
	}
	if events := s.eventsAfter(restored, listwatch.Query{}); len(events) != 1 {
		t.Errorf("got events %q, want the first write", events)
	}
}

// Even if the wall clock is behind the versions of the file, the versions of the lost
// writes must not be used again.
func TestRestoredBackupReusesNoVersion(t *testing.T) {
	s := open(t, bolt.Options{StartVersion: 1 << 52}) // in microseconds, the year 2112
	s.create("a")
	copied := readFile(t, s.path)
	lost := s.create("b").Version
	s.close()
	s.path, s.options.RestoredFromBackup = writeFile(t, copied), true
	s.open()
	if c := s.create("c"); c.Version <= lost {
		t.Errorf("got version %d, want one after %d", c.Version, lost)
	}
}

func TestConcurrentUpdatesAreAllKept(t *testing.T) {
	// A writer can lose at most 98 races against the other writers, so its hundredth try succeeds
	// even if each transaction takes long.
	const writers, each = 8, 14
	s := open(t, bolt.Options{})
	start := s.create("a").Version
	var done sync.WaitGroup
	for range writers {
		done.Go(func() {
			for range each {
				_, err := s.pods.Update(t.Context(), podKey("a"), listwatch.Preconditions{},
					func(old *listwatch.Object) ([]byte, error) {
						i, err := strconv.Atoi(numberBeforeBrace(old.Data))
						return pod("a", i+1), err
					})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	s.reopen()
	if got := numberBeforeBrace(s.get("a").Data); got != fmt.Sprint(writers*each) ||
		s.db.Version() != start+writers*each {
		t.Errorf("got count %s at version %d, want %d at %d", got, s.db.Version(), writers*each, start+writers*each)
	}
}

func (t *testDB) get(name string) *listwatch.Object {
	t.Helper()
	return testkit.Must(t.pods.Get(t.Context(), podKey(name)))(t)
}

// numberBeforeBrace returns the digits before the last byte of data, which is a closing brace.
func numberBeforeBrace(data []byte) string {
	end := len(data) - 1
	start := end
	for start > 0 && data[start-1] >= '0' && data[start-1] <= '9' {
		start--
	}
	return string(data[start:end])
}

func TestCanceledCallsWriteNothing(t *testing.T) {
	s := open(t, bolt.Options{})
	o := s.create("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, createErr := s.pods.Create(ctx, pod("b", 0))
	_, getErr := s.pods.Get(ctx, o.Key)
	_, replaceErr := s.pods.Replace(ctx, o.Key, pod("a", 1))
	_, deleteErr := s.pods.Delete(ctx, o.Key, listwatch.Preconditions{})
	for _, err := range []error{createErr, getErr, replaceErr, deleteErr} {
		if err != context.Canceled {
			t.Errorf("got %v, want the unchanged error of the context", err)
		}
	}
	if s.db.Version() != o.Version {
		t.Errorf("the database is at %v, want %v", s.db.Version(), o.Version)
	}
}

func TestClosedDatabaseServesReads(t *testing.T) {
	s := open(t, bolt.Options{})
	o := s.create("a")
	s.close()
	if _, err := s.pods.Create(t.Context(), pod("b", 0)); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("a write: got %v, want code Unavailable", err)
	}
	if got := s.get("a"); got != o {
		t.Errorf("got %v, want the written object", got)
	}
	if _, err := s.db.Collection(store.CollectionSpec{Kind: "Node"}); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("a new collection: got %v, want code Unavailable", err)
	}
	if err := s.db.Shrink(); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("Shrink: got %v, want code Unavailable", err)
	}
}

func TestBackupOfAnOpenFileIsConsistent(t *testing.T) {
	s := open(t, bolt.Options{})
	s.writeSome()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // writes until stop is closed
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_, _ = s.pods.Create(s.Context(), pod(fmt.Sprint("during-", i), i))
			}
		}
	}()
	path := filepath.Join(t.TempDir(), "backup.db")
	for range 3 { // a backup replaces the previous one
		if err := s.db.Backup(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := bolt.BackupFile(s.path+".none", path+".2"); !errors.Is(err, listwatch.Invalid) ||
		!strings.Contains(err.Error(), "the file does not exist") {
		t.Errorf("a file that does not exist: got %v", err)
	}
	if err := bolt.BackupFile(s.path, path+".2"); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("a copy of the open file from outside: got %v, want code Unavailable", err)
	}
	close(stop)
	<-stopped
	s.close()
	if err := bolt.BackupFile(s.path, path+".2"); err != nil {
		t.Fatal(err)
	}
	want := s.db.Version()
	for _, file := range []string{path, path + ".2"} {
		_, err := bolt.Open(file, bolt.Options{})
		if !errors.Is(err, listwatch.Invalid) || !errors.Is(err, bolt.ErrBackup) {
			t.Errorf("%s without RestoredFromBackup: got %v, want code Invalid and ErrBackup", file, err)
		}
		copied := &testDB{TB: t, path: file, options: bolt.Options{RestoredFromBackup: true}}
		copied.open() // checks the counts of all records
		if n := len(copied.list(listwatch.Query{})); n < 5 || copied.db.Version() <= want {
			t.Errorf("%s: %d objects at version %d, want those of the backup, at a version above %d", file, n-1,
				copied.db.Version(), want)
		}
		epoch := copied.db.Epoch()
		copied.options.RestoredFromBackup = false
		copied.reopen() // the restore is declared once
		if copied.db.Epoch() != epoch {
			t.Errorf("%s: the epoch changed at the second start", file)
		}
		copied.close()
	}
}

func TestTraceShowsTheProgressOfALoad(t *testing.T) {
	const objects = 2500
	var progress []string
	loading := func(collection string, done, total int64) {
		progress = append(progress, fmt.Sprintf("%s: %d of %d", collection, done, total))
	}
	db := open(t, bolt.Options{Trace: &bolt.Trace{Loading: loading}})
	var writers sync.WaitGroup
	for writer := range 100 {
		writers.Go(func() {
			for i := range objects / 100 {
				pod := fmt.Appendf(nil, `{"metadata":{"name":"pod-%d-%d","namespace":"default"}}`, writer, i)
				if _, err := db.pods.Create(t.Context(), pod); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	db.reopen()
	if want := []string{"pods: 1000 of 2500", "pods: 2000 of 2500"}; !slices.Equal(progress, want) {
		t.Errorf("got %v, want %v", progress, want)
	}
}
