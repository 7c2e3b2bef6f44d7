package informer_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

type persisted struct {
	listwatch.Metadata `json:"metadata"`
	Value              int `json:"value"`
}

// A persistFixture is a collection of objects a, b and c, and the path of a copy.
type persistFixture struct {
	*testing.T
	db      *memory.DB
	things  *store.Collection
	options persist.File
	saves   []persist.Saved
	states  []informer.StateChange
}

func newPersistFixture(t *testing.T) *persistFixture {
	f := &persistFixture{
		T: t, db: memory.Open(memory.Options{}),
		options: persist.File{Path: filepath.Join(t.TempDir(), "copy")},
	}
	f.things = f.collection("Thing")
	for _, name := range []string{"a", "b", "c"} {
		f.put(name, 1)
	}
	return f
}

func (f *persistFixture) collection(kind string) *store.Collection {
	f.Helper()
	return testkit.Must(
		f.db.Collection(store.CollectionSpec{APIVersion: "v1", Kind: kind, Plural: strings.ToLower(kind) + "s"}))(f)
}

func (f *persistFixture) put(name string, value int) {
	f.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q},"value":%d}`, name, value)
	testkit.Put(f, f.things, data)
}

func (f *persistFixture) remove(name string) {
	f.Helper()
	if _, err := f.things.Delete(f.Context(), listwatch.Key{Name: name}, listwatch.Preconditions{}); err != nil {
		f.Fatal(err)
	}
}

// run runs an informer of source until it is synced and during returns, and returns its objects.
func run[T any](f *persistFixture, source listwatch.Source, during func()) map[string]T {
	f.Helper()
	f.saves, f.states = nil, nil
	i := &informer.Informer[T]{Source: source, Persist: f.options, Trace: &informer.Trace{
		Saved:    func(s persist.Saved) { f.saves = append(f.saves, s) },
		Received: func(c informer.StateChange) { f.states = append(f.states, c) },
	}}
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan error)
	go func() { done <- i.Run(ctx) }()
	if err := i.WaitForSync(ctx); err != nil {
		f.Fatal(err)
	}
	during()
	synctest.Wait()
	cancel()
	<-done
	all := map[string]T{}
	for key, value := range i.Snapshot().All() {
		all[key.Name] = value
	}
	return all
}

func values(all map[string]persisted) map[string]int {
	m := map[string]int{}
	for name, p := range all {
		m[name] = p.Value
	}
	return m
}

func nothing() {}

func TestRestartedInformerRequestsTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newPersistFixture(t)
		got := run[persisted](f, f.things, func() { f.put("a", 2) })
		if want := map[string]int{"a": 2, "b": 1, "c": 1}; !cmp.Equal(values(got), want) || len(f.saves) != 1 ||
			f.saves[0].Objects != 3 {
			t.Errorf("got %v and saves %+v, want %v and a copy of it", got, f.saves, want)
		}
		f.put("d", 1)
		f.put("b", 2)
		f.remove("c")
		f.db.Compact()
		got = run[persisted](f, f.things, func() { f.put("e", 1) })
		if want := map[string]int{"a": 2, "b": 2, "d": 1, "e": 1}; !cmp.Equal(values(got), want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if len(f.states) != 1 || f.states[0].Since == 0 || f.states[0].Objects != 2 || f.states[0].Gone != 1 {
			t.Errorf("received %+v, want a difference of two objects and one key", f.states)
		}
		// Without changes the copy stays as it is.
		if got = run[persisted](f, f.things, nothing); len(got) != 4 || len(f.saves) != 0 || f.states[0].Objects != 0 {
			t.Errorf("got %v, saves %+v and %+v, want an empty difference", got, f.saves, f.states)
		}
	})
}

// TestUnusableCopyMeansTheWholeState lists why a copy is not used.
func TestUnusableCopyMeansTheWholeState(t *testing.T) {
	type other struct {
		listwatch.Metadata `json:"metadata"`
		Value, More        int
	}
	for name, again := range map[string]func(f *persistFixture){
		"another form":   func(f *persistFixture) { f.options.Form = "2"; run[persisted](f, f.things, nothing) },
		"another type":   func(f *persistFixture) { run[other](f, f.things, nothing) },
		"another server": func(f *persistFixture) { run[persisted](f, newPersistFixture(f.T).things, nothing) },
		"damage": func(f *persistFixture) {
			data, err := os.ReadFile(f.options.Path)
			if err == nil {
				data[len(data)/2] ^= 1
				err = os.WriteFile(f.options.Path, data, 0o600)
			}
			if err != nil {
				f.Fatal(err)
			}
			run[persisted](f, f.things, nothing)
		},
		"damage that is valid JSON": func(f *persistFixture) {
			data, err := os.ReadFile(f.options.Path)
			if err == nil {
				data = bytes.Replace(data, []byte(`"value":1`), []byte(`"value":2`), 1)
				err = os.WriteFile(f.options.Path, data, 0o600)
			}
			if err != nil {
				f.Fatal(err)
			}
			run[persisted](f, f.things, nothing)
		},
		"no file": func(f *persistFixture) {
			if err := os.Remove(f.options.Path); err != nil {
				f.Fatal(err)
			}
			run[persisted](f, f.things, nothing)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newPersistFixture(t)
				run[persisted](f, f.things, nothing)
				if again(f); len(f.states) != 1 || f.states[0].Since != 0 || f.states[0].Objects != 3 {
					t.Errorf("received %+v, want the whole state", f.states)
				}
			})
		})
	}
}

func TestCopyKeepsWholeObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newPersistFixture(t)
		first := run[*listwatch.Object](f, f.things, nothing)
		again := run[*listwatch.Object](f, f.things, nothing)
		if diff := cmp.Diff(first, again); diff != "" || f.states[0].Since == 0 {
			t.Errorf("received %+v; difference: %s", f.states, diff)
		}
	})
}

func TestCopyIsSavedAtMostOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newPersistFixture(t)
		run[persisted](f, f.things, func() {
			for n := range 300 {
				f.put("a", n)
				time.Sleep(time.Second)
			}
		})
		if n := len(f.saves); n < 5 || n > 7 {
			t.Errorf("saved %d times in five minutes, want about 6", n)
		}
	})
}

func TestCopyIsRemovedWithTheRightToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newPersistFixture(t)
		run[persisted](f, f.things, nothing)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		i := &informer.Informer[persisted]{Source: forbidden{f.things}, Persist: f.options}
		_ = i.Run(ctx) // the error of ctx
		if _, err := os.Stat(f.options.Path); !os.IsNotExist(err) {
			t.Errorf("got %v, want no file", err)
		}
	})
}

// forbidden is a Source that the reader may not read.
type forbidden struct{ listwatch.Source }

func (forbidden) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	return nil, &listwatch.Error{Code: listwatch.Forbidden}
}

func (forbidden) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, &listwatch.Error{Code: listwatch.Forbidden}
}

func TestSecretsAreSavedOnlyOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newPersistFixture(t)
		f.things = f.collection("Secret")
		f.put("password", 1)
		for _, permitted := range []bool{false, true} {
			f.options.Secrets = permitted
			run[persisted](f, f.things, nothing)
			if _, err := os.Stat(f.options.Path); (err == nil) != permitted {
				t.Errorf("permitted: %t, got %v", permitted, err)
			}
		}
	})
}

// TestRandomRestartsEndWithTheState stops informers at random moments. Whatever they have saved,
// the next one must end with the state of the server.
func TestRandomRestartsEndWithTheState(t *testing.T) {
	for seed := range uint64(racetest.Rounds(20)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			f := newPersistFixture(t)
			f.options.Interval = time.Millisecond
			write := func() {
				name := string(rune('a' + random.IntN(8)))
				if _, err := f.things.Get(t.Context(), listwatch.Key{Name: name}); err == nil && random.IntN(3) == 0 {
					f.remove(name)
				} else {
					f.put(name, random.IntN(100))
				}
				if random.IntN(10) == 0 {
					f.db.Compact()
				}
			}
			differences := 0
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(20))*time.Millisecond)
				i := &informer.Informer[persisted]{Source: f.things, Persist: f.options, Trace: &informer.Trace{
					Received: func(c informer.StateChange) {
						if c.Since != 0 {
							differences++
						}
					},
				}}
				stopped := make(chan struct{})
				go func() { _ = i.Run(ctx); close(stopped) }()
				for ctx.Err() == nil {
					write()
					time.Sleep(time.Duration(random.IntN(1500)) * time.Microsecond)
				}
				<-stopped
				cancel()
				for range random.IntN(10) {
					write()
				}
			}
			want := map[string]int{}
			page, err := f.things.List(t.Context(), listwatch.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Items {
				p, err := listwatch.Decode[persisted](o)
				if err != nil {
					t.Fatal(err)
				}
				want[o.Key.Name] = p.Value
			}
			if got := values(run[persisted](f, f.things, nothing)); !cmp.Equal(got, want) {
				t.Errorf("seed %d: got %v, want %v", seed, got, want)
			}
			if differences < 5 {
				t.Errorf("seed %d: received %d differences, want more", seed, differences)
			}
		})
	}
}
