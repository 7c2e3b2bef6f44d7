package etcd

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// A watchStream is one watch of etcd on a gRPC stream of its own, so that responses to
// progress requests concern only this watch.
//
// This package does not use the Watcher of clientv3. That Watcher resumes automatically at
// the revision that it has recorded, and the response of a lagging member has made it go
// back (etcd-io/etcd#20221). Here only the log decides where to resume.
type watchStream struct {
	grpc   pb.Watch_WatchClient
	ctx    context.Context // the context of the gRPC stream
	cancel context.CancelCauseFunc
	from   int64 // the start revision
	// created is true once etcd has confirmed the watch. Before that, etcd can report progress up
	// to a revision without having sent the events up to that revision.
	created     bool
	lastMessage atomic.Int64 // the time of the last message, in nanoseconds since 1970
}

// openStream opens a watch of the keys in r that starts at revision from. The watch ends with
// ctx.
func openStream(ctx context.Context, db *DB, r keyRange, from int64) (*watchStream, error) {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	s := &watchStream{ctx: ctx, cancel: cancel, from: from}
	s.lastMessage.Store(time.Now().UnixNano())
	var err error
	if s.grpc, err = db.watches.Watch(ctx, grpc.WaitForReady(true),
		grpc.MaxCallRecvMsgSize(math.MaxInt32)); err != nil {
		s.close()
		return nil, s.cause(err)
	}
	err = s.grpc.Send(
		&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
			Key: []byte(r.dir), RangeEnd: []byte(r.end()), StartRevision: from, Fragment: true, ProgressNotify: true,
		}}})
	if err != nil {
		// Send returns only io.EOF. Recv returns the reason.
		_, err = s.grpc.Recv()
		s.close()
		return nil, s.cause(err)
	}
	return s, nil
}

func (s *watchStream) close() { s.cancel(nil) }

// cause returns the reason for which this program canceled s, or err if it did not cancel
// s.
func (s *watchStream) cause(err error) error {
	if cause := context.Cause(s.ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// requestProgress asks etcd to report the revision up to which it has sent all events. Only one
// goroutine may call it.
func (s *watchStream) requestProgress() error {
	return s.grpc.Send(
		&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

// receive returns the next response, with its fragments joined.
func (s *watchStream) receive() (*pb.WatchResponse, error) {
	var whole *pb.WatchResponse
	for {
		part, err := s.grpc.Recv()
		if err != nil {
			return nil, s.cause(err)
		}
		s.lastMessage.Store(time.Now().UnixNano())
		if whole == nil {
			whole = part
		} else {
			whole.Events = append(whole.Events, part.Events...)
		}
		if !part.Fragment {
			return whole, nil
		}
	}
}
