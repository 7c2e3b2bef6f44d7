package informers

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/informer"
)

// Mutants break the cases of informers.
var Mutants = []mutation.Mutant{
	{Name: "informer-forgets-deletions", Breaks: []string{"informer/relist-diff", "informer/final-state-unknown"}, Defect: onTold(func(t harness.Notification) []harness.Notification {
		if t.Type == informer.ChangeDeleted {
			return nil
		}
		return []harness.Notification{t}
	})},
	{Name: "informer-knows-every-final-state", Breaks: []string{"informer/final-state-unknown", "informer/relist-diff"}, Defect: onTold(func(t harness.Notification) []harness.Notification {
		t.FinalStateUnknown = false
		return []harness.Notification{t}
	})},
	{Name: "informer-adds-twice", Breaks: []string{"informer/relist-diff", "informer/late-handler", "informer/no-old-update"}, Defect: onTold(func(t harness.Notification) []harness.Notification {
		if t.Type == informer.ChangeAdded {
			return []harness.Notification{t, t}
		}
		return []harness.Notification{t}
	})},
	{Name: "informer-tells-what-was", Breaks: []string{"informer/no-old-update"}, Defect: onTold(func(t harness.Notification) []harness.Notification {
		if t.Type != informer.ChangeUpdated {
			return []harness.Notification{t}
		}
		return []harness.Notification{t, {Type: informer.ChangeUpdated, Key: t.Key, Version: t.Old.Version, Old: t.New, New: t.Old}}
	})},
	{Name: "informer-keeps-the-first-state", Breaks: []string{"informer/store-equals-list", "order/converge"}, Defect: onCaches(func(c harness.Cache) harness.Cache {
		return &stubborn{Cache: c, first: map[listwatch.Key]*listwatch.Object{}}
	})},
	{Name: "informer-has-synced-at-once", Breaks: []string{"informer/has-synced"}, Defect: onCaches(func(c harness.Cache) harness.Cache { return premature{c} })},
	{Name: "informer-waits-the-same-each-time", Breaks: []string{"informer/backoff"}, Defect: reference.Interceptors{Informer: func(i *informer.Informer[*listwatch.Object]) harness.Cache {
		i.Backoff = listwatch.Backoff{Min: 10 * time.Second, Max: 10 * time.Second}
		return harness.CacheOf(i)
	}}},
}

// onCaches returns what puts change above our informer.
func onCaches(change func(harness.Cache) harness.Cache) reference.Interceptors {
	return reference.Interceptors{Informer: func(i *informer.Informer[*listwatch.Object]) harness.Cache { return change(harness.CacheOf(i)) }}
}

// onTold returns what changes what handlers are told.
func onTold(change func(harness.Notification) []harness.Notification) reference.Interceptors {
	return onCaches(func(c harness.Cache) harness.Cache { return garbled{c, change} })
}

type garbled struct {
	harness.Cache
	change func(harness.Notification) []harness.Notification
}

// Notify changes what the handler is told.
func (g garbled) Notify(handler func(harness.Notification)) {
	g.Cache.Notify(func(t harness.Notification) {
		for _, t := range g.change(t) {
			handler(t)
		}
	})
}

// A stubborn cache shows of each object what it was told of it first.
type stubborn struct {
	harness.Cache

	mu    sync.Mutex
	first map[listwatch.Key]*listwatch.Object // guarded by mu
}

// Objects shows what was there once.
func (s *stubborn) Objects() []*listwatch.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.Cache.Objects()
	for i, o := range all {
		if s.first[o.Key] == nil {
			s.first[o.Key] = o
		}
		all[i] = s.first[o.Key]
	}
	return all
}

// A premature cache says that it has synced whether it has or not.
type premature struct{ harness.Cache }

// HasSynced is always true.
func (premature) HasSynced() bool { return true }
