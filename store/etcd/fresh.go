package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
)

// patience is how long a read waits for the newest state.
const patience = 3 * time.Second

// tryTime is how long one member may take to answer before another is asked. Reads are asked again, and so are writes, which can't be done twice.
const tryTime = 2 * time.Second

// get reads, linearized, from one member after the other until one answers, ctx ends or limit is over.
func (db *DB) get(ctx context.Context, limit time.Duration, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if db.life.Err() != nil {
			return nil, errClosed
		}
		try, done := context.WithTimeout(ctx, tryTime)
		floor := db.seen.floor()
		got, err := db.client.Get(try, key, o...)
		done()
		switch {
		case err == nil:
			return got, db.check(got.Header, floor)
		case ctx.Err() != nil || codeOf(err) != listwatch.Unavailable:
			return nil, err
		}
	}
}

// readRevision asks etcd for its newest revision.
func (db *DB) readRevision(ctx context.Context) (revision int64, err error) {
	got, err := db.get(ctx, patience, db.options.Prefix+"/", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return got.Header.Revision, nil
}

// check looks for signs that etcd is not what it was: another cluster, or one whose past was restored. Everything in memory is worth nothing then, and
// its versions will be used again for other states. floor is that of seen from before a linearized request, or zero.
func (db *DB) check(h *pb.ResponseHeader, floor int64) error {
	s := &db.seen
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken != nil:
	case h.GetClusterId() != db.cluster:
		s.broken = fmt.Errorf("cluster %x is not %x, which this server began with", h.GetClusterId(), db.cluster)
	case h.GetRevision() < floor:
		s.broken = wentBack(h.GetRevision(), floor)
	}
	if s.broken != nil {
		return startAgain(s.broken)
	}
	if floor != 0 {
		s.revision = max(s.revision, h.GetRevision())
	}
	return nil
}

func wentBack(now, before int64) error {
	return fmt.Errorf("etcd is at revision %d and was at %d: it was restored from a backup", now, before)
}

func startAgain(why error) error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "etcd", Message: "start the server again", Err: why}
}

// lostPast notes that a watch had seen more than there is now.
func (db *DB) lostPast(now, before int64) error {
	db.seen.mu.Lock()
	defer db.seen.mu.Unlock()
	if db.seen.broken == nil {
		db.seen.broken = wentBack(now, before)
	}
	return startAgain(db.seen.broken)
}

// seen is what etcd said of itself.
type seen struct {
	mu sync.Mutex
	// Guarded by mu.
	revision int64 // the newest by a linearized request
	broken   error // why nothing can be trusted any more
}

// floor returns a revision that no linearized request that is sent from now on may be below.
func (s *seen) floor() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.revision, 1)
}

// catchUp returns when the log of b has everything that etcd had at the call. It is an error of code NotYet where that can't be said in time.
func (b *backend) catchUp(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	revision, err := b.db.revisions.Get(limited)
	if err == nil {
		b.want(listwatch.Version(revision))
		err = b.head.Wait(limited, listwatch.Version(revision))
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case b.db.life.Err() != nil:
		return errClosed
	case codeOfRead(err) == listwatch.Unavailable || codeOfRead(err) == listwatch.NotYet:
		return notFresh(err)
	}
	return failed(ctx, "etcd", err)
}

func codeOfRead(err error) listwatch.Code {
	if c := listwatch.CodeOf(err); c != listwatch.Unknown {
		return c
	}
	return codeOf(err)
}
