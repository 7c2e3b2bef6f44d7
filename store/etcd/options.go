package etcd

import (
	"crypto/tls"
	"time"

	"github.com/listwatch/listwatch/store"
)

// Options are what a database is opened with. The zero Options are sound for an etcd on this machine.
type Options struct {
	// Endpoints are the members of the cluster, as URLs or as host:port. None: http://127.0.0.1:2379.
	Endpoints []string
	// TLS is how members are talked to whose URL begins with https; nil: with the roots of the system.
	TLS *tls.Config
	// Username and Password are those of a user of etcd. Empty: none.
	Username, Password string

	// Prefix is what every key begins with; a slash at its end counts for nothing. Empty: /listwatch.
	Prefix string
	// Layout says where below the prefix a collection is. Nil: [DefaultLayout].
	Layout func(store.CollectionSpec) string
	// Transformer changes values on their way to etcd and back, such as to encrypt them. Nil: nothing does. All servers need the same.
	Transformer Transformer
	// ReadOnly refuses all writes.
	ReadOnly bool
	// SkipUnreadable makes the start go on where a key can't be read as an object: there is no object then. Otherwise it fails, for most
	// likely the prefix holds something else. A key that becomes unreadable later is always treated as gone, and told to [Trace].
	SkipUnreadable bool

	// History is how many revisions a collection begins in the past, where etcd still has them. Zero: 100,000; negative: none.
	HistoryRevisions int64
	// HistoryAge, HistoryBytes and FrameBytes bound what is kept in memory: a write's age counts from when this server saw it.
	// HistoryAge zero: 5 minutes; negative: for ever.
	HistoryAge time.Duration
	// HistoryBytes is how many bytes the history of each collection may hold beside its objects. Zero: 256 MiB; negative: unlimited.
	HistoryBytes int64
	// FrameBytes is how many of these bytes may be encoded events, and how many more those with which watches begin. Zero: a quarter
	// of HistoryBytes; negative: unlimited.
	FrameCacheBytes int64

	// Timeout bounds a single request to etcd, and the connection at the start. Zero or negative: 5 seconds.
	Timeout time.Duration
	// Trace is told what happens; nil: nobody is.
	Trace *Trace
}

// The defaults of [Options].
const (
	DefaultEndpoint = "http://127.0.0.1:2379"
	DefaultPrefix   = "/listwatch"
	DefaultHistory  = 100_000
	DefaultTimeout  = 5 * time.Second
)

// A Trace is told what happens between a database and etcd. Each hook may be nil; hooks must be quick, and are called from many goroutines.
// collection is the qualified name of one, as in "deployments.apps".
type Trace struct {
	// Loading is called as objects come in, at the start and when a collection is listed again; total is how many there are.
	Loading func(collection string, done, total int64)
	// Loaded is called when a collection can be served: its state is of version, and it can be watched from floor.
	Loaded func(collection string, objects int, floor, version int64, took time.Duration)
	// Lost is called when a watch of etcd ended, or could not be opened; it will be opened again from the revision after the last.
	WatchLost func(collection string, err error)
	// Resumed is called when a watch of etcd that was lost is open again, from revision.
	WatchResumed func(collection string, revision int64)
	// Relisted is called when events were lost for good, with the reason: the collection is listed again, and its watchers expire.
	Relisted func(collection string, reason error)
	// Repeated is called for events that etcd sent again and that were dropped.
	DuplicatesDropped func(collection string, revision int64)
	// Unreadable is called for a key that holds no object.
	Unreadable func(collection, key string, err error)
}

func (o Options) withDefaults() Options {
	if len(o.Endpoints) == 0 {
		o.Endpoints = []string{DefaultEndpoint}
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.Layout == nil {
		o.Layout = DefaultLayout
	}
	if o.HistoryRevisions == 0 {
		o.HistoryRevisions = DefaultHistory
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	o.Trace = o.Trace.withDefaults()
	return o
}

// withDefaults returns t with a hook that does nothing in the place of each that is nil.
func (t *Trace) withDefaults() *Trace {
	var full Trace
	if t != nil {
		full = *t
	}
	if full.Loading == nil {
		full.Loading = func(string, int64, int64) {}
	}
	if full.Loaded == nil {
		full.Loaded = func(string, int, int64, int64, time.Duration) {}
	}
	if full.WatchLost == nil {
		full.WatchLost = func(string, error) {}
	}
	if full.WatchResumed == nil {
		full.WatchResumed = func(string, int64) {}
	}
	if full.Relisted == nil {
		full.Relisted = func(string, error) {}
	}
	if full.DuplicatesDropped == nil {
		full.DuplicatesDropped = func(string, int64) {}
	}
	if full.Unreadable == nil {
		full.Unreadable = func(string, string, error) {}
	}
	return &full
}
