package etcd

import (
	"context"
	"runtime"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
)

// A keyValue is a key with its value and revisions.
type keyValue = mvccpb.KeyValue

// loadTries is how often the state is read anew where etcd compacts it away meanwhile. The last try takes the newest state.
const loadTries = 3

// pageSize is how many keys are read at once.
const pageSize = 1000

// load reads the state at some revision into the log, from where it is to be followed. It begins as far back as History and etcd allow, so that
// the watchers of others can resume here, and not before what the log had.
func (b *backend) load(ctx context.Context) error {
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(ctx, b.db.options.Timeout)
		newest, err := b.db.revisions.Get(limited) // others may share the read
		cancel()
		if err != nil {
			return err
		}
		if head := int64(b.head.Version()); newest < head {
			return b.db.lostPast(newest, head)
		}
		at := newest
		if try < loadTries {
			if at, err = b.past(ctx, newest); err != nil {
				return err
			}
		}
		s, err := b.readState(ctx, at)
		if is(err, rpctypes.ErrCompacted) && try < loadTries {
			continue
		}
		if err != nil {
			return err
		}
		b.hidden = s.hidden
		if b.odd.Store(nil); s.why != nil {
			b.odd.Store(&s.why)
		}
		b.Reset(s.objects, listwatch.Version(at))
		b.head.Advance(listwatch.Version(at))
		return nil
	}
}

// past returns the revision to begin at: the oldest that etcd still has, at most History before newest, and not before the head.
func (b *backend) past(ctx context.Context, newest int64) (int64, error) {
	oldest := max(newest-max(b.db.options.HistoryRevisions, 0), int64(b.head.Version()), 1)
	if oldest >= newest {
		return newest, nil
	}
	_, err := b.db.get(ctx, b.db.options.Timeout, b.location.dir, clientv3.WithRev(oldest), clientv3.WithCountOnly())
	if !is(err, rpctypes.ErrCompacted) {
		return oldest, err
	}
	limited, cancel := context.WithTimeout(ctx, b.db.options.Timeout)
	defer cancel()
	// Only a watch tells what was compacted.
	s, err := b.db.openStream(limited, b.location, oldest)
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
			return 0, canceled(got)
		}
	}
}

// A loaded is the state that was read.
type loaded struct {
	objects []*listwatch.Object
	hidden  map[string]bool // keys that hold no object
	why     error           // why the first of them does not
}

// readState reads all keys at a revision, page by page. Pages are decoded while the next one is on its way.
func (b *backend) readState(ctx context.Context, at int64) (*loaded, error) {
	pages := make(chan []*mvccpb.KeyValue)
	workers := max(1, runtime.GOMAXPROCS(0))
	parts := make([]loaded, workers)
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
	all := &loaded{hidden: make(map[string]bool)}
	for _, p := range parts {
		all.objects = append(all.objects, p.objects...)
		for path := range p.hidden {
			all.hidden[path] = true
			all.why = p.why
		}
	}
	return all, nil
}

func (b *backend) readPages(ctx context.Context, at int64, pages chan<- []*mvccpb.KeyValue) error {
	done := int64(0)
	for from := b.location.dir; ; {
		got, err := b.db.get(ctx, 2*b.db.options.Timeout, from, clientv3.WithRange(b.location.end()), clientv3.WithRev(at), clientv3.WithLimit(pageSize))
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

func (b *backend) decodePage(page []*mvccpb.KeyValue, into *loaded) {
	for _, kv := range page {
		key, err := b.location.key(string(kv.Key))
		var o *listwatch.Object
		if err == nil {
			o, err = b.read(key, kv)
		}
		if err == nil {
			into.objects = append(into.objects, o)
			continue
		}
		if into.hidden == nil {
			into.hidden = make(map[string]bool)
		}
		into.hidden[string(kv.Key)] = true
		into.why = unreadable(kv.Key, err)
		b.db.options.Trace.Unreadable(b.name, string(kv.Key), err)
	}
}

// checkKeys refuses to start on keys that hold something else.
func (b *backend) checkKeys() error {
	why := b.odd.Load()
	if why == nil || b.db.options.SkipUnreadable {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Corrupt, Op: b.name,
		Message: "keys below " + b.location.dir + " hold something else than objects of kind " + b.resource.Kind + "; choose another prefix or layout",
		Err:     *why,
	}
}
