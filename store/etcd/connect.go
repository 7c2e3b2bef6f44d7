package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/listwatch/listwatch"
)

// The keepalive parameters of connections. The client abandons a member that has not
// responded for the sum of both.
const (
	keepAlive        = 10 * time.Second // the minimum of gRPC
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
	go func() { // clientv3.New does not accept a context for the call; it returns after DialTimeout
		c, err := newClient(o)
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		return r.client, requestError(ctx, op, r.err)
	case <-ctx.Done():
		go func() {
			if r := <-done; r.client != nil {
				_ = r.client.Close() // there is no caller to return the error to
			}
		}()
		return nil, ctx.Err()
	}
}

func newClient(o Options) (*clientv3.Client, error) {
	password := o.Password
	if o.PasswordFunc != nil {
		password = o.PasswordFunc()
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: o.Endpoints, TLS: o.tls(), DialOptions: o.dialOptions(), Username: o.Username, Password: password,
		DialTimeout: o.Timeout, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallSendMsgSize: math.MaxInt32, // etcd limits the size of requests
		Logger:             zap.NewNop(),  // Trace reports the relevant events
	})
	if err == nil && o.PasswordFunc != nil {
		c.Auth = currentPassword{c.Auth, o.PasswordFunc}
	}
	return c, err
}

// currentPassword makes the client authenticate with a password that may change.
type currentPassword struct {
	clientv3.Auth
	password func() string
}

func (c currentPassword) Authenticate(ctx context.Context, name, _ string) (*clientv3.AuthenticateResponse, error) {
	return c.Auth.Authenticate(ctx, name, c.password())
}

func (o Options) tls() *tls.Config {
	if o.TLSConfig != nil {
		return o.TLSConfig()
	}
	return o.TLS
}

// dialOptions returns the options with which each connection calls TLSConfig. It returns nil for
// clear text. Like etcd's client, it chooses between TLS and clear text by the first endpoint.
func (o Options) dialOptions() []grpc.DialOption {
	if o.TLSConfig == nil || strings.HasPrefix(o.Endpoints[0], "http://") ||
		strings.HasPrefix(o.Endpoints[0], "unix://") {
		return nil
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(currentTLS{credentials.NewTLS(o.TLSConfig()), o.TLSConfig})}
}

// currentTLS holds gRPC credentials whose configuration may change.
type currentTLS struct {
	credentials.TransportCredentials
	config func() *tls.Config
}

func (c currentTLS) ClientHandshake(ctx context.Context, authority string,
	conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.config()).ClientHandshake(ctx, authority, conn)
}

func (c currentTLS) Clone() credentials.TransportCredentials { return c }

// addConnectionError returns err, the error of the first request. If that request timed out
// because there is no connection, addConnectionError adds the reason, which the client of
// etcd does not return.
func addConnectionError(ctx context.Context, o Options, err error) error {
	e, ok := errors.AsType[*listwatch.Error](err)
	if !ok || e.Code != listwatch.Unavailable || ctx.Err() != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, err := clientv3.New(
		clientv3.Config{Endpoints: o.Endpoints, TLS: o.tls(), DialOptions: o.dialOptions(), Logger: zap.NewNop()})
	if err != nil {
		return e
	}
	defer client.Close()
	_, err = pb.NewMaintenanceClient(client.ActiveConnection()).Status(limited, &pb.StatusRequest{},
		grpc.WaitForReady(false))
	if is(err, rpctypes.ErrUserEmpty) {
		return e // the connection works; etcd rejected this request because it is not authenticated
	}
	if reason := rpctypes.ErrorDesc(err); err != nil && reason != "" {
		e.Message = fmt.Sprintf("no answer within %v", o.Timeout)
		e.Err = errors.New(reason)
	}
	return e
}

// identifyCluster reads the ID of the cluster and checks the version of etcd.
func (db *DB) identifyCluster(ctx context.Context) error {
	op := "etcd at " + strings.Join(db.options.Endpoints, ", ")
	limited, cancel := context.WithTimeout(ctx, db.options.Timeout)
	defer cancel()
	// A linearized read also fails if the cluster has no leader.
	got, err := db.client.Get(limited, db.options.Prefix+"/", clientv3.WithCountOnly())
	if err != nil {
		return requestError(ctx, op, err)
	}
	if db.clusterID = got.Header.ClusterId; db.clusterID == 0 {
		return &listwatch.Error{
			Code: listwatch.Unsupported, Op: op,
			Message: "it reports no cluster ID, so it is not etcd; kine and other replacements are not supported",
		}
	}
	status, err := pb.NewMaintenanceClient(db.client.ActiveConnection()).Status(limited, &pb.StatusRequest{})
	switch {
	case is(err, rpctypes.ErrPermissionDenied):
		return nil // this user is not allowed to read the version
	case err != nil:
		return requestError(ctx, op, err)
	}
	if err := checkVersion(status.Version); err != nil {
		return &listwatch.Error{Code: listwatch.Unsupported, Op: op, Err: err}
	}
	return nil
}

// checkVersion returns an error for servers that can report progress before they have sent
// all events up to it (etcd-io/etcd#15220), or that never report progress (#17507).
// kube-apiserver requires the same versions.
func checkVersion(version string) error {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return nil //nolint:nilerr // the version of a custom build is unknown
	}
	old := major < 3 || major == 3 && (minor < 4 || minor == 4 && patch < 31 || minor == 5 && patch < 13)
	if old {
		return fmt.Errorf("its version is %s, want 3.4.31, 3.5.13, or later", version)
	}
	return nil
}
