package etcd

import (
	"context"
	"errors"
	"math"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/listwatch/listwatch"
)

// A stream is one watch of etcd, alone on its gRPC stream, so that answers to requests for progress are about it and nothing else.
//
// The watcher of clientv3 is not used: it resumes by itself, from where it believes to be, and an answer of a member that lags has made it go back
// (etcd-io/etcd#20221). Here one place says where to resume: the head of the log.
type stream struct {
	grpc   pb.Watch_WatchClient
	cancel context.CancelCauseFunc
	ctx    context.Context // of the stream
	from   int64           // the first revision that was asked for
	// created says that etcd has confirmed the watch. Before that it may answer for progress ahead of events that it holds back until then.
	created bool
	heard   func() // called for each message; may be nil
}

// openStream begins a watch of all keys of l from a revision on. ctx ends it.
func (db *DB) openStream(ctx context.Context, l keyRange, from int64) (*stream, error) {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	s := &stream{ctx: ctx, cancel: cancel, from: from}
	var err error
	if s.grpc, err = db.watches.Watch(ctx, grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(math.MaxInt32)); err != nil {
		s.close()
		return nil, s.cause(err)
	}
	err = s.grpc.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(l.dir), RangeEnd: []byte(l.end()), StartRevision: from, Fragment: true, ProgressNotify: true,
	}}})
	if err != nil {
		// Send says io.EOF; why is for Recv to tell.
		_, err = s.grpc.Recv()
		s.close()
		return nil, s.cause(err)
	}
	return s, nil
}

func (s *stream) close() { s.cancel(nil) }

// cause returns why s ended, where we ended it.
func (s *stream) cause(err error) error {
	if cause := context.Cause(s.ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// askProgress asks up to which revision everything has been sent. Only one goroutine may call it.
func (s *stream) askProgress() error {
	return s.grpc.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

// receive returns the next response, with its fragments put together.
func (s *stream) receive() (*pb.WatchResponse, error) {
	var whole *pb.WatchResponse
	for {
		part, err := s.grpc.Recv()
		if err != nil {
			return nil, s.cause(err)
		}
		if s.heard != nil {
			s.heard()
		}
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

// The rhythm of requests for progress.
const (
	// progressEvery is how often progress is asked for while nobody waits: it moves bookmarks on, and shows that etcd is there.
	progressEvery = time.Second
	// progressAgain is how long an answer that did not reach what is wanted, or that did not come, is waited for; doubled each time.
	progressAgain, progressAgainMax = 5 * time.Millisecond, 100 * time.Millisecond
	// silence is after how long without a message a stream is given up.
	silence = 8 * time.Second
)

var errSilent = &listwatch.Error{Code: listwatch.Unavailable, Message: "etcd has not been heard of for " + silence.String()}

// ask asks for progress until s ends: now and then, and at once where somebody waits for it. answered tells that an answer came.
func (b *backend) ask(s *stream, answered <-chan struct{}) {
	timer := time.NewTimer(progressEvery)
	defer timer.Stop()
	outstanding, again := false, progressAgain
	for {
		ask := false
		select {
		case <-s.ctx.Done():
			return
		case <-b.wanted.kick:
			ask, again = !outstanding, progressAgain
		case <-answered:
			outstanding = false
		case <-timer.C:
			ask = true
		}
		if time.Since(time.Unix(0, b.wanted.heard.Load())) > silence {
			s.cancel(errSilent)
			return
		}
		if ask {
			if s.askProgress() != nil {
				return // the reader learns why
			}
			outstanding = true
		}
		wait := progressEvery
		if b.behind() {
			wait, again = again, min(2*again, progressAgainMax)
		}
		timer.Reset(wait)
	}
}
