package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/listwatch/listwatch"
)

// The keepalive of connections: a member that has stopped without a word is left after their sum.
const (
	keepAlive        = 10 * time.Second // gRPC allows no less
	keepAliveTimeout = 3 * time.Second
)

func connect(ctx context.Context, o Options) (*clientv3.Client, error) {
	op := "connect to etcd at " + strings.Join(o.Endpoints, ", ")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		client *clientv3.Client
		err    error
	}
	done := make(chan result, 1)
	go func() { // clientv3.New takes no context for the call; it ends by its DialTimeout
		c, err := newClient(o)
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		return r.client, failed(ctx, op, r.err)
	case <-ctx.Done():
		go func() {
			if r := <-done; r.client != nil {
				_ = r.client.Close() // nobody is left who could be told
			}
		}()
		return nil, ctx.Err()
	}
}

func newClient(o Options) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: o.Endpoints, TLS: o.TLS, Username: o.Username, Password: o.Password,
		DialTimeout: o.Timeout, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallSendMsgSize: math.MaxInt32, // how large a request may be is for etcd to say
		Logger:             zap.NewNop(),  // what is worth telling goes to Trace
	})
}

// explained returns err, of the first request, with the reason why there is no connection, where that is why: who waits for a connection is told
// only that the time is over.
func explained(ctx context.Context, o Options, err error) error {
	e, ok := errors.AsType[*listwatch.Error](err)
	if !ok || e.Code != listwatch.Unavailable || ctx.Err() != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: o.Endpoints, TLS: o.TLS, Logger: zap.NewNop()})
	if err != nil {
		return e
	}
	defer client.Close()
	_, err = pb.NewMaintenanceClient(client.ActiveConnection()).Status(limited, &pb.StatusRequest{}, grpc.WaitForReady(false))
	if is(err, rpctypes.ErrUserEmpty) {
		return e // it was asked without a name; there is a connection, so that is not why
	}
	if reason := rpctypes.ErrorDesc(err); err != nil && reason != "" {
		e.Message = fmt.Sprintf("no answer within %v", o.Timeout)
		e.Err = errors.New(reason)
	}
	return e
}

// greet asks etcd who it is, and whether it is one that keeps its promises.
func (db *DB) greet(ctx context.Context) error {
	op := "etcd at " + strings.Join(db.options.Endpoints, ", ")
	limited, cancel := context.WithTimeout(ctx, db.options.Timeout)
	defer cancel()
	// Linearized, so that a cluster without a leader is noticed too.
	got, err := db.client.Get(limited, db.options.Prefix+"/", clientv3.WithCountOnly())
	if err != nil {
		return failed(ctx, op, err)
	}
	db.cluster = got.Header.ClusterId
	status, err := pb.NewMaintenanceClient(db.client.ActiveConnection()).Status(limited, &pb.StatusRequest{})
	switch {
	case is(err, rpctypes.ErrPermissionDenied):
		return nil // it tells its version to others only
	case err != nil:
		return failed(ctx, op, err)
	}
	if err := checkVersion(status.Version); err != nil {
		return &listwatch.Error{Code: listwatch.Unsupported, Op: op, Err: err}
	}
	return nil
}

// checkVersion refuses servers that answer a request for progress before they have sent all events up to there (etcd-io/etcd#15220), or not at all
// (#17507); kube-apiserver draws the line at the same place.
func checkVersion(version string) error {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return nil //nolint:nilerr // a version of somebody's own making: we can't know
	}
	old := major < 3 || major == 3 && (minor < 4 || minor == 4 && patch < 31 || minor == 5 && patch < 13)
	if old {
		return fmt.Errorf("its version is %s, want 3.4.31, 3.5.13, or later", version)
	}
	return nil
}
