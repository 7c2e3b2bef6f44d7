package mutants

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/informer"
)

// informerMutants break the cases of informers.
var informerMutants = []Mutant{
	{"informer-forgets-deletions", []string{"informer/relist-diff", "informer/final-state-unknown"}, onTold(func(t cases.Told) []cases.Told {
		if t.Type == informer.ChangeDeleted {
			return nil
		}
		return []cases.Told{t}
	})},
	{"informer-knows-every-final-state", []string{"informer/final-state-unknown", "informer/relist-diff"}, onTold(func(t cases.Told) []cases.Told {
		t.FinalStateUnknown = false
		return []cases.Told{t}
	})},
	{"informer-adds-twice", []string{"informer/relist-diff", "informer/late-handler", "informer/no-old-update"}, onTold(func(t cases.Told) []cases.Told {
		if t.Type == informer.ChangeAdded {
			return []cases.Told{t, t}
		}
		return []cases.Told{t}
	})},
	{"informer-tells-what-was", []string{"informer/no-old-update"}, onTold(func(t cases.Told) []cases.Told {
		if t.Type != informer.ChangeUpdated {
			return []cases.Told{t}
		}
		return []cases.Told{t, {Type: informer.ChangeUpdated, Key: t.Key, Version: t.Old.Version, Old: t.New, New: t.Old}}
	})},
	{"informer-keeps-the-first-state", []string{"informer/store-equals-list", "order/converge"}, onCaches(func(c cases.Cache) cases.Cache {
		return &stubborn{Cache: c, first: map[listwatch.Key]*listwatch.Object{}}
	})},
	{"informer-has-synced-at-once", []string{"informer/has-synced"}, onCaches(func(c cases.Cache) cases.Cache { return premature{c} })},
	{"informer-waits-the-same-each-time", []string{"informer/backoff"}, cases.Interceptors{Informer: func(i *informer.Informer[*listwatch.Object]) cases.Cache {
		i.Backoff = listwatch.Backoff{Min: 10 * time.Second, Max: 10 * time.Second}
		return cases.CacheOf(i)
	}}},
}

// onCaches returns what puts change above our informer.
func onCaches(change func(cases.Cache) cases.Cache) cases.Interceptors {
	return cases.Interceptors{Informer: func(i *informer.Informer[*listwatch.Object]) cases.Cache { return change(cases.CacheOf(i)) }}
}

// onTold returns what changes what handlers are told.
func onTold(change func(cases.Told) []cases.Told) cases.Interceptors {
	return onCaches(func(c cases.Cache) cases.Cache { return garbled{c, change} })
}

type garbled struct {
	cases.Cache
	change func(cases.Told) []cases.Told
}

// Tell changes what the handler is told.
func (g garbled) Tell(handler func(cases.Told)) {
	g.Cache.Tell(func(t cases.Told) {
		for _, t := range g.change(t) {
			handler(t)
		}
	})
}

// A stubborn cache shows of each object what it was told of it first.
type stubborn struct {
	cases.Cache

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
type premature struct{ cases.Cache }

// HasSynced is always true.
func (premature) HasSynced() bool { return true }
