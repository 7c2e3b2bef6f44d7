package etcd

import (
	"context"
	"maps"
	"runtime"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
)

// maxLoadTries is the number of attempts to read the state. An attempt fails if etcd compacts the
// revision while it is read, so the last attempt reads the newest revision.
const maxLoadTries = 3

// pageSize is the number of keys read by one request.
const pageSize = 1000

// load reads the state into the log, at the revision from which the log then follows etcd. This
// revision is as old as HistoryRevisions and etcd allow, so that a client whose watch began at
// another server can resume at this one, but not older than the newest version of the log. The
// last attempt reads the newest revision.
func (b *backend) load(ctx context.Context) error {
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(ctx, b.db.options.Timeout)
		newest, err := b.db.revisions.Get(limited)
		cancel()
		if err != nil {
			return err
		}
		if applied := int64(b.applied.Version()); newest < applied {
			return b.db.revisionWentBack(newest, applied)
		}
		at := newest
		if try < maxLoadTries {
			if at, err = b.oldestRevision(ctx, newest); err != nil {
				return err
			}
		}
		s, err := b.readState(ctx, at)
		if is(err, rpctypes.ErrCompacted) && try < maxLoadTries {
			continue
		}
		if err != nil {
			return err
		}
		b.unreadable = s.unreadable
		if b.keyError.Store(nil); s.keyError != nil {
			b.keyError.Store(&s.keyError)
		}
		b.leases.reset(s.leases)
		b.Reset(s.objects, listwatch.Version(at))
		b.applied.Advance(listwatch.Version(at))
		return nil
	}
}

// oldestRevision returns the oldest revision that can be loaded. etcd must still have this
// revision, it must be at most HistoryRevisions before newest, and it must not be older than the
// version that the log has reached.
func (b *backend) oldestRevision(ctx context.Context, newest int64) (int64, error) {
	oldest := max(newest-max(b.db.options.HistoryRevisions, 0), int64(b.applied.Version()), 1)
	if oldest >= newest {
		return newest, nil
	}
	_, err := b.db.get(ctx, b.db.options.Timeout, b.keys.dir, clientv3.WithRev(oldest), clientv3.WithCountOnly())
	if !is(err, rpctypes.ErrCompacted) {
		return oldest, err
	}
	limited, cancel := context.WithTimeout(ctx, b.db.options.Timeout)
	defer cancel()
	// etcd reports the compacted revision only in the response to a watch.
	s, err := openStream(limited, b.db, b.keys, oldest)
	if err != nil {
		return 0, err
	}
	defer s.close()
	for {
		got, err := s.receive()
		switch {
		case err != nil:
			return 0, err
		case got.CompactRevision > 0:
			return min(max(got.CompactRevision, oldest), newest), nil
		case got.Canceled:
			return 0, canceled(got.CancelReason)
		}
	}
}

// A loadedState is the state at one revision.
type loadedState struct {
	objects    []*listwatch.Object
	leases     map[listwatch.Key]leased
	unreadable map[string]bool // keys whose value is not an object
	keyError   error           // the error for one of these keys
}

// readState reads all keys at a revision, page by page. It decodes each page while it waits for the
// next one.
func (b *backend) readState(ctx context.Context, at int64) (*loadedState, error) {
	pages := make(chan []*mvccpb.KeyValue)
	workers := max(1, runtime.GOMAXPROCS(0))
	parts := make([]loadedState, workers)
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			for page := range pages {
				b.decodePage(page, &parts[i])
			}
		})
	}
	err := b.readPages(ctx, at, pages)
	close(pages)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	all := &loadedState{unreadable: make(map[string]bool), leases: make(map[listwatch.Key]leased)}
	for _, p := range parts {
		all.objects = append(all.objects, p.objects...)
		maps.Copy(all.leases, p.leases)
		for path := range p.unreadable {
			all.unreadable[path] = true
			all.keyError = p.keyError
		}
	}
	return all, nil
}

func (b *backend) readPages(ctx context.Context, at int64, pages chan<- []*mvccpb.KeyValue) error {
	done := int64(0)
	for from := b.keys.dir; ; {
		got, err := b.db.get(ctx, 2*b.db.options.Timeout, from, clientv3.WithRange(b.keys.end()), clientv3.WithRev(at),
			clientv3.WithLimit(pageSize))
		if err != nil {
			return err
		}
		if n := len(got.Kvs); n > 0 {
			pages <- got.Kvs
			from = string(got.Kvs[n-1].Key) + "\x00"
			done += int64(n)
			b.db.options.Trace.Loading(b.name, done, done-int64(n)+got.Count)
		}
		if !got.More {
			return nil
		}
	}
}

func (s *loadedState) addLease(key listwatch.Key, kv *mvccpb.KeyValue) {
	if kv.Lease == 0 {
		return
	}
	if s.leases == nil {
		s.leases = make(map[listwatch.Key]leased)
	}
	s.leases[key] = leased{listwatch.Version(kv.ModRevision), kv.Lease}
}

func (b *backend) decodePage(page []*mvccpb.KeyValue, into *loadedState) {
	for _, kv := range page {
		key, err := b.keys.key(string(kv.Key))
		var o *listwatch.Object
		if err == nil {
			o, err = b.read(key, kv)
		}
		if err == nil {
			into.objects = append(into.objects, o)
			into.addLease(key, kv)
			continue
		}
		if into.unreadable == nil {
			into.unreadable = make(map[string]bool)
		}
		into.unreadable[string(kv.Key)] = true
		into.keyError = unreadableKey(kv.Key, err)
		b.db.options.Trace.Unreadable(b.name, string(kv.Key), err)
	}
}

// unreadableKeyError returns an error if a key is unreadable, unless SkipUnreadable is set.
func (b *backend) unreadableKeyError() error {
	err := b.keyError.Load()
	if err == nil || b.db.options.SkipUnreadable {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Corrupt, Op: b.name,
		Message: "a key below " + b.keys.dir + " does not hold an object of kind " + b.spec.Kind +
			"; choose another prefix or layout",
		Err: *err,
	}
}
