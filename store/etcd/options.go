package etcd

import (
	"cmp"
	"crypto/tls"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/hooks"
	"github.com/listwatch/listwatch/store"
)

// Options configure a database. The zero value is ready to use with an etcd on this machine.
type Options struct {
	// Endpoints are the members of the cluster, as URLs or host:port. If empty,
	// DefaultEndpoint is used.
	Endpoints []string
	// TLS is the configuration for members with https URLs. If nil, the root certificates of
	// the system are used.
	TLS *tls.Config
	// TLSConfig returns the configuration for a new connection to a member with an https URL, so
	// that certificates can be replaced. It must be safe for concurrent use. If nil, TLS is used.
	TLSConfig func() *tls.Config
	// Username and Password authenticate with etcd. If empty, requests are not authenticated.
	Username, Password string
	// PasswordFunc returns the password for the next authentication, so that the password can be
	// replaced. A client of etcd authenticates at the start, when its token expires, and after the
	// password has changed. PasswordFunc must be safe for concurrent use. If nil, Password is used.
	PasswordFunc func() string

	// Prefix is the prefix of all keys. A trailing slash is ignored. If empty, DefaultPrefix
	// is used.
	Prefix string
	// Layout returns the path of a collection below the prefix. If nil, [DefaultLayout] is
	// used.
	Layout func(store.CollectionSpec) string
	// Transformer changes values on their way to etcd and back, for example to encrypt them. All
	// servers must be able to read what any of them stores. A Location has no Version. An error of
	// FromStorage makes the key unreadable; see SkipUnreadable. If nil, values are stored
	// unchanged.
	Transformer store.Transformer
	// ReadOnly makes the database refuse all writes.
	ReadOnly bool
	// SkipUnreadable makes DB.Collection ignore keys that do not hold an object. If false,
	// DB.Collection returns an error for such a key, because the prefix probably holds other data.
	// A key that becomes unreadable later is always treated as deleted, and reported to [Trace].
	SkipUnreadable bool

	// HistoryRevisions sets how far before the newest revision a collection is loaded, if
	// etcd still has that revision. If zero, DefaultHistory is used. With a negative value,
	// collections are loaded at the newest revision.
	HistoryRevisions int64
	// History limits the history of each collection in memory.
	History listwatch.Retention

	// Timeout limits each request to etcd, and the connection attempt of Open. A page of the
	// state may take twice as long; some small reads have shorter limits. If zero or negative,
	// DefaultTimeout is used.
	Timeout time.Duration
	// Trace receives events of the connection to etcd. If nil, they are dropped.
	Trace *Trace
}

// The defaults of [Options].
const (
	DefaultEndpoint = "http://127.0.0.1:2379"
	DefaultPrefix   = "/listwatch"
	DefaultHistory  = 100_000
	DefaultTimeout  = 5 * time.Second
)

// A Trace has hooks for events between a database and etcd. A hook may be nil. Hooks are called
// from many goroutines and must return quickly. collection is a qualified name such as
// "deployments.apps".
type Trace struct {
	// Loading is called while the objects of a collection are read, with the number read so
	// far and the total.
	Loading func(collection string, done, total int64)
	// Replaying is called every few seconds after the objects of a collection have been read at
	// an older revision, while the collection receives the events since then. revision is the
	// revision that the collection has reached. The collection is loaded when it reaches newest.
	// The load fails if the revision has not changed for 30 seconds.
	Replaying func(collection string, revision, newest int64)
	// Loaded is called when a collection can be served. version is the version of its state, and
	// floor is the oldest version at which a watch can start.
	Loaded func(collection string, objects int, floor, version int64, took time.Duration)
	// WatchLost is called when a watch of etcd has ended or could not be opened. The
	// database then opens it again at the next revision.
	WatchLost func(collection string, err error)
	// WatchResumed is called when a watch of etcd has been opened at a revision.
	WatchResumed func(collection string, revision int64)
	// Relisted is called when events have been lost, with the reason. The database then
	// loads the collection again, and its watches expire.
	Relisted func(collection string, reason error)
	// DuplicatesDropped is called when etcd has repeated events, which the database
	// ignores.
	DuplicatesDropped func(collection string, revision int64)
	// Committed is called after each write, with its duration and its error. The duration includes
	// the time until the write was visible at this server.
	Committed func(collection string, took time.Duration, err error)
	// Unreadable is called for a key that does not hold an object.
	Unreadable func(collection, key string, err error)
}

func (o Options) withDefaults() Options {
	if len(o.Endpoints) == 0 {
		o.Endpoints = []string{DefaultEndpoint}
	}
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	if o.Layout == nil {
		o.Layout = DefaultLayout
	}
	o.HistoryRevisions = cmp.Or(o.HistoryRevisions, DefaultHistory)
	o.Timeout = cmp.Or(max(o.Timeout, 0), DefaultTimeout)
	o.Trace = hooks.Fill(o.Trace)
	return o
}

// DefaultLayout returns the plural of a collection with its group: "pods", "deployments.apps".
func DefaultLayout(s store.CollectionSpec) string { return s.QualifiedName() }
