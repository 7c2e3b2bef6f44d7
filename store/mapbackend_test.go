package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/store"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A mapBackend is a minimal Backend. Its versions are 1, 2, 3 and so on, and it has no
// history.
type mapBackend struct {
	mu      sync.Mutex
	objects map[listwatch.Key]*listwatch.Object
	version listwatch.Version
	commits int
	// before is called before each commit if it is not nil. Tests use it to simulate a
	// concurrent writer.
	before func(c store.Change)
}

var errNoHistory = &listwatch.Error{Code: listwatch.Unsupported, Message: "a mapBackend has no history"}

func (b *mapBackend) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, errNoHistory
}

func (b *mapBackend) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	return nil, errNoHistory
}

func (b *mapBackend) Get(_ context.Context, key listwatch.Key) (*listwatch.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[key], nil
}

func (b *mapBackend) Commit(_ context.Context, c store.Change) (*listwatch.Object, error) {
	if b.before != nil {
		b.before(c)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.objects[c.Key] != c.Old {
		return nil, &listwatch.Error{Code: listwatch.Conflict}
	}
	b.version++
	b.commits++
	if c.New == nil {
		delete(b.objects, c.Key)
		return c.Old.At(b.version), nil
	}
	b.objects[c.Key] = c.New.Seal(b.version)
	return b.objects[c.Key], nil
}

// newCollection returns a collection over a new mapBackend.
func newCollection(s store.CollectionSpec) (*store.Collection, *mapBackend) {
	b := &mapBackend{objects: make(map[listwatch.Key]*listwatch.Object)}
	return store.New(s, b), b
}

func newPods() (*store.Collection, *mapBackend) {
	return newCollection(store.CollectionSpec{
		Kind: "Pod", Namespaced: true,
		Fields: []string{"spec.nodeName", "spec.ready", "spec.n", "spec.list", "metadata.uid"},
	})
}

func mustCreate(t testing.TB, c *store.Collection, data string) *listwatch.Object {
	t.Helper()
	o, err := c.Create(t.Context(), []byte(data))
	if err != nil {
		t.Fatalf("create %s: %v", data, err)
	}
	return o
}

func wantCode(t testing.TB, err error, code listwatch.Code, message string) {
	t.Helper()
	if !errors.Is(err, code) || message != "" && listwatch.AsError(err).Message != message {
		t.Errorf("got error %v, want %v: %s", err, code, message)
	}
}
