package mutants

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/informer"
)

// informersMutants are informers with one defect each, which the cases about informers must detect.
var informersMutants = []mutant{
	{
		Name: "informer-drops-deletions", Breaks: []string{"informer/relist-diff", "informer/final-state-unknown"},
		Defect: onNotifications(func(t harness.Notification) []harness.Notification {
			if t.Type == informer.ChangeDeleted {
				return nil
			}
			return []harness.Notification{t}
		}),
	},
	{
		Name:   "informer-never-marks-final-state-unknown",
		Breaks: []string{"informer/final-state-unknown", "informer/relist-diff"},
		Defect: onNotifications(func(t harness.Notification) []harness.Notification {
			t.FinalStateUnknown = false
			return []harness.Notification{t}
		}),
	},
	{
		Name:   "informer-sends-adds-twice",
		Breaks: []string{"informer/relist-diff", "informer/late-handler", "informer/no-old-update"},
		Defect: onNotifications(func(t harness.Notification) []harness.Notification {
			if t.Type == informer.ChangeAdded {
				return []harness.Notification{t, t}
			}
			return []harness.Notification{t}
		}),
	},
	{
		Name: "informer-sends-old-states", Breaks: []string{"informer/no-old-update"},
		Defect: onNotifications(func(t harness.Notification) []harness.Notification {
			if t.Type != informer.ChangeUpdated {
				return []harness.Notification{t}
			}
			return []harness.Notification{
				t, {Type: informer.ChangeUpdated, Key: t.Key, Version: t.Old.Version, Old: t.New, New: t.Old},
			}
		}),
	},
	{
		Name: "informer-keeps-the-first-state", Breaks: []string{"informer/store-equals-list", "order/converge"},
		Defect: onCaches(func(c harness.Cache) harness.Cache {
			return &firstStateCache{Cache: c, first: map[listwatch.Key]*listwatch.Object{}}
		}),
	},
	{
		Name: "informer-has-synced-at-once", Breaks: []string{"informer/has-synced"},
		Defect: onCaches(func(c harness.Cache) harness.Cache { return alwaysSyncedCache{c} }),
	},
	{
		Name: "informer-backoff-is-constant", Breaks: []string{"informer/backoff"},
		Defect: defect{Informer: func(s listwatch.Source) harness.Cache {
			return harness.NewCache(s, listwatch.Backoff{Min: 30 * time.Second, Max: 30 * time.Second})
		}},
	},
}

// onCaches returns a defect that replaces the informer's cache with the result of change.
func onCaches(change func(harness.Cache) harness.Cache) defect {
	return defect{
		Informer: func(s listwatch.Source) harness.Cache { return change(harness.NewCache(s, listwatch.Backoff{})) },
	}
}

// onNotifications returns a defect that replaces each notification with the result of change.
func onNotifications(change func(harness.Notification) []harness.Notification) defect {
	return onCaches(func(c harness.Cache) harness.Cache { return alteredCache{c, change} })
}

type alteredCache struct {
	harness.Cache
	change func(harness.Notification) []harness.Notification
}

func (a alteredCache) Notify(handler func(harness.Notification)) {
	a.Cache.Notify(func(t harness.Notification) {
		for _, t := range a.change(t) {
			handler(t)
		}
	})
}

// firstStateCache is a cache that always returns the first state of each object that it has seen.
type firstStateCache struct {
	harness.Cache

	mu    sync.Mutex
	first map[listwatch.Key]*listwatch.Object // guarded by mu
}

func (f *firstStateCache) Objects() []*listwatch.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.Cache.Objects()
	for i, o := range all {
		if f.first[o.Key] == nil {
			f.first[o.Key] = o
		}
		all[i] = f.first[o.Key]
	}
	return all
}

// alwaysSyncedCache is a cache that always reports that it has synced.
type alwaysSyncedCache struct{ harness.Cache }

func (alwaysSyncedCache) HasSynced() bool { return true }
