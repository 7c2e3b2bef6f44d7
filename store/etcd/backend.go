package etcd

import (
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// A backend keeps one collection. Its log follows etcd.
type backend struct {
	*history.Log

	// Immutable after construction.
	db      *DB
	spec    store.CollectionSpec
	name    string
	keys    keyRange
	applied *history.Revision // the log holds every event up to this revision
	created time.Time
	// following is true while a watch of etcd is open.
	following atomic.Bool

	demand demand
	// keyError is the error of an unreadable key, or nil if every key can be read.
	keyError atomic.Pointer[error]

	// load sets these fields. After that, only the goroutine of run uses them.
	unreadable map[string]bool // keys whose value is not an object
	counted    time.Time       // the time of the last comparison by checkCount
}

var _ store.Backend = (*backend)(nil)

func newBackend(db *DB, s store.CollectionSpec) *backend {
	b := &backend{
		db: db, spec: s, name: s.QualifiedName(), keys: newKeyRange(db.options, s), applied: new(history.Revision),
		created: time.Now(), demand: demand{signal: make(chan struct{}, 1)},
	}
	b.Log = history.New(history.Options{
		Retention: db.options.History, Description: s.Description(db.Epoch()), Revision: b.applied,
	})
	return b
}

// read returns the object in kv. If the log has the same version, it returns the object of
// the log.
func (b *backend) read(key listwatch.Key, kv *keyValue) (*listwatch.Object, error) {
	v := listwatch.Version(kv.ModRevision)
	if o := b.Log.Get(key); o != nil && o.Version == v {
		return o, nil
	}
	value := kv.Value
	if t := b.db.options.Transformer; t != nil {
		var err error
		if value, err = t.FromStorage(Location{b.name, key}, value); err != nil {
			return nil, unreadableKey(kv.Key, err)
		}
	}
	o, err := decode(b.spec, key, value, v)
	if err != nil {
		return nil, unreadableKey(kv.Key, err)
	}
	return o, nil
}

func unreadableKey(path []byte, err error) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "etcd: key " + string(path), Err: err}
}

// A demand is the highest version that readers wait for. While the log has not reached it,
// the server requests progress from etcd.
type demand struct {
	signal chan struct{} // capacity 1; holds a token when version has changed

	mu sync.Mutex
	// Guarded by mu.
	version listwatch.Version
	until   time.Time // when the readers stop waiting
}

// A keyValue is a key with its value and revisions.
type keyValue = mvccpb.KeyValue
