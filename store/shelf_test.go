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

// A shelf is the least that is a Backend: versions 1, 2, 3, and no history.
type shelf struct {
	mu      sync.Mutex
	objects map[listwatch.Key]*listwatch.Object
	version listwatch.Version
	commits int
	// before, where not nil, runs before each commit, for somebody else to be faster.
	before func(c store.Change)
}

var errNoHistory = &listwatch.Error{Code: listwatch.Unsupported, Message: "a shelf has no history"}

func (s *shelf) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, errNoHistory
}

func (s *shelf) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	return nil, errNoHistory
}

func (s *shelf) Get(_ context.Context, key listwatch.Key) (*listwatch.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key], nil
}

func (s *shelf) Commit(_ context.Context, c store.Change) (*listwatch.Object, error) {
	if s.before != nil {
		s.before(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[c.Key] != c.Old {
		return nil, &listwatch.Error{Code: listwatch.Conflict}
	}
	s.version++
	s.commits++
	if c.New == nil {
		delete(s.objects, c.Key)
		return c.Old.At(s.version), nil
	}
	s.objects[c.Key] = c.New.Seal(s.version)
	return s.objects[c.Key], nil
}

// collectionOf returns a collection on a shelf of its own.
func collectionOf(r store.CollectionSpec) (*store.Collection, *shelf) {
	s := &shelf{objects: make(map[listwatch.Key]*listwatch.Object)}
	return store.New(r, s), s
}

func pods() (*store.Collection, *shelf) {
	return collectionOf(store.CollectionSpec{Kind: "Pod", Namespaced: true, Fields: []string{"spec.nodeName", "spec.ready", "spec.n", "spec.list", "metadata.uid"}})
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
