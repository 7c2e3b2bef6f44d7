package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/expirytest"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/typed"
)

type agent struct {
	listwatch.Metadata `json:"metadata"`
	TTL                int `json:"ttl"` // in seconds
}

var agentSpec = store.CollectionSpec{
	Kind: "Agent", TTL: typed.TTL(func(a agent) time.Duration { return time.Duration(a.TTL) * time.Second }),
}

// An agentDB is a database with a collection of agents, whose objects have a TTL.
type agentDB struct {
	*testDB
	agents *store.Collection
}

// inAgentBubble runs test with fake time.
func inAgentBubble(t *testing.T, o bolt.Options, test func(t *agentDB)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(openAgents(t, o)) })
}

func openAgents(t testing.TB, o bolt.Options) *agentDB {
	t.Helper()
	d := &agentDB{testDB: &testDB{TB: t, path: filepath.Join(t.TempDir(), "test.db"), options: o}}
	d.open()
	t.Cleanup(d.close)
	return d
}

func (t *agentDB) open() {
	t.Helper()
	t.db = testkit.Must(bolt.Open(t.path, t.options))(t)
	t.agents = testkit.Must(t.db.Collection(agentSpec))(t)
}

func (t *agentDB) restart() {
	t.Helper()
	t.close()
	t.open()
}

// kill continues with a copy of the open file, as if the process had been killed.
func (t *agentDB) kill() {
	t.Helper()
	path := writeFile(t, readFile(t, t.path))
	t.close()
	t.path = path
	t.open()
}

func (t *agentDB) create(name string, ttl int) *listwatch.Object {
	t.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q},"ttl":%d}`, name, ttl)
	return testkit.Must(t.agents.Create(t.Context(), data))(t)
}

func (t *agentDB) renew(name string) error {
	_, err := t.agents.Renew(t.Context(), listwatch.Key{Name: name}, listwatch.Preconditions{})
	return err
}

func (t *agentDB) mustRenew(name string) {
	t.Helper()
	if err := t.renew(name); err != nil {
		t.Error(err)
	}
}

// wantAfter checks that name exists just before d has passed, and no longer two seconds later: the
// time that is left is saved in whole seconds, and the end is noticed once a second.
func (t *agentDB) wantAfter(d time.Duration, name string) {
	t.Helper()
	<-time.After(d - time.Millisecond)
	if _, err := t.agents.Get(t.Context(), listwatch.Key{Name: name}); err != nil {
		t.Errorf("%s does not live for %v: %v", name, d, err)
	}
	<-time.After(2*time.Second + time.Millisecond)
	synctest.Wait()
	if _, err := t.agents.Get(t.Context(), listwatch.Key{Name: name}); !errors.Is(err, listwatch.NotFound) {
		t.Errorf("%s lives for longer than %v + 2s: %v", name, d, err)
	}
}

func TestCleanStopKeepsTheTimeLeft(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		t.create("a", 10)
		t.create("forever", 0)
		time.Sleep(4 * time.Second)
		t.close()
		time.Sleep(time.Hour)
		t.open()
		if s := t.agents.Stats(); s.Expiring != 1 {
			t.Errorf("%d objects expire, want 1", s.Expiring)
		}
		t.wantAfter(6*time.Second, "a")
		if s := t.agents.Stats(); s.Objects != 1 || s.Expiring != 0 {
			t.Errorf("got %d objects, %d of them expire, want one that does not", s.Objects, s.Expiring)
		}
	})
}

// A slowReader is a Transformer that takes a minute to read an object of another collection.
type slowReader struct{ reverser }

func (r slowReader) FromStorage(at store.Location, stored []byte) ([]byte, error) {
	if at.Collection == "others" {
		<-time.After(time.Minute)
	}
	return r.reverser.FromStorage(at, stored)
}

func TestLoadingOtherCollectionsTakesNoTime(t *testing.T) {
	inAgentBubble(t, bolt.Options{Transformer: slowReader{}}, func(t *agentDB) {
		others := store.CollectionSpec{Kind: "Other", Plural: "others"}
		other := testkit.Must(t.db.Collection(others))(t)
		testkit.Must(other.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`)))(t)
		t.create("a", 10)
		t.restart()
		testkit.Must(t.db.Collection(others))(t)
		t.wantAfter(9*time.Second, "a")
	})
}

func TestTTLStartsAgainAfterACrash(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		t.create("a", 10)
		time.Sleep(8 * time.Second)
		t.kill()
		t.wantAfter(10*time.Second, "a")
	})
}

// The times that a clean stop has saved are not in the file any more when the next start crashes.
func TestSavedTimesAreUsedOnce(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		t.create("a", 10)
		time.Sleep(8 * time.Second)
		t.restart()
		t.mustRenew("a")
		t.kill()
		t.wantAfter(10*time.Second, "a")
	})
}

func TestWrittenObjectDoesNotUseSavedTime(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		t.create("a", 10)
		time.Sleep(8 * time.Second)
		t.close()
		spec := store.CollectionSpec{Kind: "Agent"} // as a version of the program without a TTL
		t.db = testkit.Must(bolt.Open(t.path, t.options))(t)
		agents := testkit.Must(t.db.Collection(spec))(t)
		data := []byte(`{"metadata":{"name":"a"},"ttl":20}`)
		testkit.Must(agents.Replace(t.Context(), listwatch.Key{Name: "a"}, data))(t)
		t.restart()
		t.wantAfter(20*time.Second, "a")
	})
}

// Objects may have been renewed since a backup, so a restored copy does not use the saved times.
func TestRestoredBackupStartsTheWholeTTL(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		t.create("a", 10)
		time.Sleep(8 * time.Second)
		t.close()
		backup := filepath.Join(t.TempDir(), "backup.db")
		if err := bolt.BackupFile(t.path, backup); err != nil {
			t.Fatal(err)
		}
		t.path, t.options.RestoredFromBackup = backup, true
		t.open()
		t.wantAfter(10*time.Second, "a")
	})
}

func TestDamagedLifetimesAreDetected(t *testing.T) {
	s := openAgents(t, bolt.Options{})
	s.create("a", 10)
	s.close()
	s.db = testkit.Must(bolt.Open(s.path, s.options))(t)
	err := bolt.EditFile(s.db, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bolt.HeaderBucket)
		value := bytes.Clone(b.Get(bolt.LifetimesKey("agents")))
		value[0]++
		return b.Put(bolt.LifetimesKey("agents"), value)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Collection(agentSpec); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("got %v, want Corrupt", err)
	}
}

// A renewal makes no transaction, no version, no event, and changes no byte of the file.
func TestRenewalWritesNothing(t *testing.T) {
	s := openAgents(t, bolt.Options{})
	s.create("a", 10)
	hook := s.wrapTransactions(nil)
	w := testkit.Watch(t, s.agents, listwatch.Query{InitialEvents: listwatch.InitialEventsNo}).(listwatch.Poller)
	version, before := s.db.Version(), testkit.Must(os.ReadFile(s.path))(t)
	for range 1000 {
		s.mustRenew("a")
	}
	if n, err := w.Poll(make([]listwatch.Event, 1)); n > 0 || err != nil {
		t.Errorf("a watch received %d events, %v", n, err)
	}
	after := testkit.Must(os.ReadFile(s.path))(t)
	if hook.count != 0 || s.db.Version() != version || !bytes.Equal(before, after) {
		t.Errorf("got %d transactions, version %d after %d, file changed: %t", hook.count, s.db.Version(), version,
			!bytes.Equal(before, after))
	}
}

// While the disk does not respond, renewals succeed, and the object that is being deleted waits.
func TestStuckDiskEndsNoRenewedObject(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		t.create("alive", 6)
		t.create("dead", 3)
		hook := t.blockTransactions()
		<-hook.entered // the delete of dead
		start := time.Now()
		for time.Since(start) < time.Minute {
			t.mustRenew("alive")
			time.Sleep(2 * time.Second)
		}
		waiting, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := t.agents.Renew(waiting, listwatch.Key{Name: "dead"}, listwatch.Preconditions{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a renewal of an object that is being deleted: %v, want the end of its context", err)
		}
		t.mustRenew("alive")
		hook.proceed <- struct{}{}
		time.Sleep(5 * time.Second)
		if err := t.renew("dead"); !errors.Is(err, listwatch.NotFound) {
			t.Errorf("a renewal after the delete: %v, want NotFound", err)
		}
		if s := t.agents.Stats(); s.Objects != 1 {
			t.Errorf("got %d objects, want the one that was renewed", s.Objects)
		}
		t.wrapTransactions(nil)
	})
}

// On a full disk no delete succeeds, but renewals do. Once there is space, only the objects end
// that were not renewed.
func TestFullDiskEndsNoRenewedObject(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		t.create("alive", 6)
		t.create("dead", 6)
		t.create("late", 6)
		failed := 0
		hook := t.wrapTransactions(func(func() error) error { failed++; return syscall.ENOSPC })
		for range 10 {
			time.Sleep(2 * time.Second)
			t.mustRenew("alive")
		}
		t.mustRenew("late")
		if s := t.agents.Stats(); s.Objects != 3 || failed < 10 {
			t.Errorf("got %d objects after %d failed transactions, want 3 and some", s.Objects, failed)
		}
		hook.setOutcome(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := t.agents.Stats(); s.Objects != 2 {
			t.Errorf("got %d objects, want the 2 that were renewed", s.Objects)
		}
		t.wantAfter(4*time.Second, "late")
	})
}

// A renewal wins over a delete that is queued behind a transaction.
func TestRenewalWinsOverAQueuedDelete(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		t.create("a", 3)
		hook := t.blockTransactions()
		done := make(chan error)
		go func() {
			_, err := t.agents.Create(t.Context(), []byte(`{"metadata":{"name":"b"}}`))
			done <- err
		}()
		<-hook.entered
		time.Sleep(4 * time.Second) // the delete of a is queued
		t.mustRenew("a")
		hook.proceed <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		t.wrapTransactions(nil)
		t.wantAfter(3*time.Second, "a")
	})
}

func TestClosedDatabaseDoesNotRenew(t *testing.T) {
	s := openAgents(t, bolt.Options{})
	s.create("a", 10)
	s.close()
	if err := s.renew("a"); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
}

func TestManyObjectsEndTogether(t *testing.T) {
	inAgentBubble(t, bolt.Options{}, func(t *agentDB) {
		bolt.DisableSync(t.db)
		const objects = 2000
		for i := range objects {
			t.create(fmt.Sprint("a", i), 5)
		}
		hook := t.wrapTransactions(nil)
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if s := t.agents.Stats(); s.Objects != 0 || hook.count > 20 {
			t.Errorf("%d objects are left after %d transactions", s.Objects, hook.count)
		}
	})
}

// Property: whatever is written, renewed, paused, stopped and killed, no object ends before its TTL
// has passed since its last renewal, and each object ends once.
func TestRandomRenewalsMatchTheModel(t *testing.T) {
	expirytest.Run(t, racetest.Rounds(60), 200, func(t *testing.T, now func() time.Time) *expirytest.DB {
		s := &testDB{TB: t, path: filepath.Join(t.TempDir(), "test.db")}
		var agents *store.Collection
		var isFull atomic.Bool
		open := func() {
			s.db = testkit.Must(bolt.Open(s.path, bolt.Options{}))(t)
			bolt.DisableSync(s.db)
			bolt.SetClock(s.db, now)
			agents = testkit.Must(s.db.Collection(expirytest.Spec))(t)
			s.wrapTransactions(func(transact func() error) error {
				if isFull.Load() {
					return syscall.ENOSPC
				}
				return transact()
			})
		}
		open()
		t.Cleanup(s.close)
		return &expirytest.DB{
			Agents:  func() *store.Collection { return agents },
			Restart: func(down func()) { s.close(); down(); open() },
			Kill: func(down func()) {
				path := writeFile(s, readFile(s, s.path))
				s.close()
				s.path = path
				down()
				open()
			},
			Fill: isFull.Store,
		}
	})
}
