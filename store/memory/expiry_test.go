package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/expirytest"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

type agent struct {
	listwatch.Metadata `json:"metadata"`
	TTL                int `json:"ttl"` // in seconds
}

var agentSpec = store.CollectionSpec{
	Kind: "Agent", TTL: typed.TTL(func(a agent) time.Duration { return time.Duration(a.TTL) * time.Second }),
}

func openAgents(t testing.TB, db *memory.DB) *store.Collection {
	t.Helper()
	return testkit.Must(db.Collection(agentSpec))(t)
}

func newAgent(name string, ttl int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"ttl":%d}`, name, ttl)
}

func renew(t testing.TB, agents *store.Collection, name string) {
	t.Helper()
	if _, err := agents.Renew(t.Context(), listwatch.Key{Name: name}, listwatch.Preconditions{}); err != nil {
		t.Error(err)
	}
}

// An object with a TTL ends with one ordinary DELETED event: a version of its own, and the last
// state. Renewals cause no event and no version, and the sizes show what expires.
func TestObjectsExpireOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expired []string
		db := memory.Open(memory.Options{Trace: &memory.Trace{Expired: func(c string, o *listwatch.Object) {
			expired = append(expired, c+" "+line(listwatch.Deleted, o))
		}}})
		agents := openAgents(t, db)
		a, b := create(t, agents, newAgent("a", 3)), create(t, agents, newAgent("b", 5))
		create(t, agents, newAgent("forever", 0))
		w := testkit.Must(agents.Watch(t.Context(), listwatch.Query{InitialEvents: listwatch.InitialEventsNo}))(t)
		version := db.Version()
		for range 5 {
			time.Sleep(2 * time.Second)
			renew(t, agents, "a")
		}
		want := []string{line(listwatch.Deleted, b.At(version+1)), line(listwatch.Deleted, a.At(version+2))}
		if s := agents.Stats(); s.Expiring != 1 || s.Objects != 2 || db.Version() != version+1 {
			t.Errorf("got %d of %d objects that expire at version %d, want 1 of 2 at %d", s.Expiring, s.Objects,
				db.Version(), version+1)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff(want, next(t, w, 2)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := agents.Stats(); s.Expiring != 0 || s.Objects != 1 || db.Version() != version+2 {
			t.Errorf("got %d of %d objects that expire at version %d, want 0 of 1 at %d", s.Expiring, s.Objects,
				db.Version(), version+2)
		}
		for i := range want {
			want[i] = "agents " + want[i]
		}
		if diff := cmp.Diff(want, expired); diff != "" {
			t.Errorf("hook (-want +got):\n%s", diff)
		}
	})
}

// Each kind of write starts the TTL that the object then has.
func TestWritesStartTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := openAgents(t, memory.Open(memory.Options{}))
		for name, write := range map[string]func(key listwatch.Key) error{
			"replace": func(key listwatch.Key) error {
				_, err := agents.Replace(t.Context(), key, []byte(newAgent(key.Name, 9)))
				return err
			},
			"no-change": func(key listwatch.Key) error {
				_, err := agents.Replace(t.Context(), key, []byte(newAgent(key.Name, 6)))
				return err
			},
			"empty-patch": func(key listwatch.Key) error {
				_, err := agents.Patch(t.Context(), key, listwatch.Patch{
					Type: listwatch.MergePatch, Data: []byte(`{}`),
				})
				return err
			},
			"recreated": func(key listwatch.Key) error {
				_, err := agents.Delete(t.Context(), key, listwatch.Preconditions{})
				_, createErr := agents.Create(t.Context(), []byte(newAgent(key.Name, 6)))
				return errors.Join(err, createErr)
			},
			"longer": func(key listwatch.Key) error {
				_, err := agents.Replace(t.Context(), key, []byte(newAgent(key.Name, 600)))
				return err
			},
			"forever": func(key listwatch.Key) error {
				_, err := agents.Replace(t.Context(), key, []byte(newAgent(key.Name, 0)))
				return err
			},
			"finalizer": func(key listwatch.Key) error {
				_, err := agents.Patch(t.Context(), key, listwatch.Patch{
					Type: listwatch.MergePatch, Data: []byte(`{"metadata":{"finalizers":["example.com/f"]}}`),
				})
				return err
			},
		} {
			create(t, agents, newAgent(name, 6))
			time.Sleep(5 * time.Second)
			if err := write(listwatch.Key{Name: name}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ends := map[string]time.Duration{
				"replace": 9 * time.Second, "longer": 10 * time.Minute, "forever": 1 << 60, "finalizer": 1 << 60,
			}[name]
			ends = max(ends, 6*time.Second)
			time.Sleep(min(ends, time.Hour) - time.Millisecond)
			if _, err := agents.Get(t.Context(), listwatch.Key{Name: name}); err != nil {
				t.Errorf("%s: before its end: %v", name, err)
			}
			time.Sleep(time.Second + 2*time.Millisecond)
			_, err := agents.Get(t.Context(), listwatch.Key{Name: name})
			if lives := ends == 1<<60; lives != (err == nil) {
				t.Errorf("%s: a second after its end: %v", name, err)
			}
		}
	})
}

// A dry run does not renew, and a delete without finalizers leaves nothing that could expire.
func TestDryRunsAndDeletesDoNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.Open(memory.Options{})
		agents := openAgents(t, db)
		create(t, agents, newAgent("a", 3))
		create(t, agents, newAgent("b", 3))
		time.Sleep(2 * time.Second)
		renew(t, agents.DryRun(), "a")
		if _, err := agents.Delete(t.Context(), listwatch.Key{Name: "b"}, listwatch.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		version := db.Version()
		time.Sleep(time.Minute)
		if s := agents.Stats(); s.Objects != 0 || s.Expiring != 0 || db.Version() != version+1 {
			t.Errorf("got %+v at %d, want no object and one delete after %d", s, db.Version(), version)
		}
	})
}

// Agents renew at the moment at which their objects end. Each renewal is acknowledged and in force,
// or it receives NotFound.
func TestRenewalsRaceWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := openAgents(t, memory.Open(memory.Options{}))
		var wg sync.WaitGroup
		var mu sync.Mutex
		lost := 0
		for i := range 40 {
			key := listwatch.Key{Name: fmt.Sprint("a", i)}
			create(t, agents, newAgent(key.Name, 2))
			wg.Go(func() {
				for range 20 {
					time.Sleep(2 * time.Second)
					_, err := agents.Renew(t.Context(), key, listwatch.Preconditions{})
					if err != nil && !errors.Is(err, listwatch.NotFound) {
						t.Error(err)
					}
					if err != nil {
						mu.Lock()
						lost++
						mu.Unlock()
						return
					}
					if _, err := agents.Get(context.Background(), key); err != nil {
						t.Errorf("after an acknowledged renewal: %v", err)
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%d of 40 agents came too late", lost)
		time.Sleep(10 * time.Second)
		if s := agents.Stats(); s.Objects != 0 {
			t.Errorf("%d objects are left", s.Objects)
		}
	})
}

// A renewal that comes after an object is due, but before it is deleted, is in force.
func TestRenewalOfADueObjectWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agents *store.Collection
		var deleted []string
		db := memory.Open(memory.Options{Trace: &memory.Trace{Expired: func(_ string, o *listwatch.Object) {
			if deleted = append(deleted, o.Key.Name); len(deleted) == 1 {
				renew(t, agents, map[string]string{"a": "b", "b": "a"}[o.Key.Name])
			}
		}}})
		agents = openAgents(t, db)
		create(t, agents, newAgent("a", 3))
		create(t, agents, newAgent("b", 3))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := agents.Stats(); s.Objects != 1 {
			t.Errorf("got %d objects, want the one that was renewed when both were due", s.Objects)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := agents.Stats(); s.Objects != 0 || len(deleted) != 2 {
			t.Errorf("got %d objects, and %q deleted, want none and both", s.Objects, deleted)
		}
	})
}

// A pause of the process, for example SIGSTOP, ends no object that was renewed in time.
func TestPauseOfTheProcessEndsNoObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.Open(memory.Options{})
		var paused atomic.Int64 // nanoseconds
		memory.SetClock(db, func() time.Time { return time.Now().Add(time.Duration(paused.Load())) })
		agents := openAgents(t, db)
		create(t, agents, newAgent("alive", 6))
		create(t, agents, newAgent("dead", 3))
		for range 10 {
			time.Sleep(2 * time.Second)
			renew(t, agents, "alive")
			paused.Add(int64(20 * time.Second))
		}
		if s := agents.Stats(); s.Objects != 1 {
			t.Errorf("got %d objects, want the one that is renewed", s.Objects)
		}
		time.Sleep(10 * time.Second)
		if s := agents.Stats(); s.Objects != 0 {
			t.Errorf("got %d objects, want none", s.Objects)
		}
	})
}

func BenchmarkRenew(b *testing.B) {
	agents := openAgents(b, memory.Open(memory.Options{}))
	keys := make([]listwatch.Key, 10_000)
	for i := range keys {
		keys[i].Name = fmt.Sprint("a", i)
		create(b, agents, newAgent(keys[i].Name, 1000))
	}
	patch := listwatch.Patch{Type: listwatch.MergePatch, Data: []byte(`{}`)}
	for name, renew := range map[string]func(key listwatch.Key) error{
		"Renew": func(key listwatch.Key) error {
			_, err := agents.Renew(b.Context(), key, listwatch.Preconditions{})
			return err
		},
		"Patch": func(key listwatch.Key) error {
			_, err := agents.Patch(b.Context(), key, patch)
			return err
		},
		"Replace": func(key listwatch.Key) error {
			_, err := agents.Replace(b.Context(), key, []byte(newAgent(key.Name, 1000)))
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := renew(keys[i%len(keys)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Property: whatever is written, renewed and paused, no object ends before its TTL has passed since
// its last renewal, and each object ends once.
func TestRandomRenewalsMatchTheModel(t *testing.T) {
	expirytest.Run(t, racetest.Rounds(300), 200, func(t *testing.T, now func() time.Time) *expirytest.DB {
		db := memory.Open(memory.Options{})
		memory.SetClock(db, now)
		c := testkit.Must(db.Collection(expirytest.Spec))(t)
		return &expirytest.DB{Agents: func() *store.Collection { return c }}
	})
}
