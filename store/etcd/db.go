package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// A DB is a set of collections in one etcd. It is safe for concurrent use.
type DB struct {
	// Immutable after construction.
	options   Options
	client    *clientv3.Client
	watches   pb.WatchClient
	cluster   uint64
	revisions *revisions
	life      context.Context // ends with Close
	end       context.CancelFunc
	work      sync.WaitGroup // of what Close waits for

	seen seen

	mu          sync.Mutex
	collections map[string]*backend // by qualified name; guarded by mu
}

// The keepalive of connections: a member that has stopped without a word is left after their sum.
const (
	keepAlive        = 10 * time.Second // gRPC allows no less
	keepAliveTimeout = 3 * time.Second
)

// Open connects to etcd. Errors have code Unavailable where no member answers within [Options.Timeout], Unauthorized and Forbidden where etcd knows no
// such user or does not let it read the prefix, Unsupported where etcd is too old. ctx bounds the call.
func Open(ctx context.Context, o Options) (*DB, error) {
	o = o.withDefaults()
	client, err := connect(ctx, o)
	if err != nil {
		return nil, explained(ctx, o, err)
	}
	db := &DB{options: o, client: client, watches: pb.NewWatchClient(client.ActiveConnection()), collections: make(map[string]*backend)}
	db.life, db.end = context.WithCancel(context.Background())
	db.revisions = &revisions{read: db.readRevision}
	err = db.greet(ctx)
	if err == nil {
		err = db.watchHealth()
	}
	if err != nil {
		_ = db.Close() // the first error says more
		return nil, explained(ctx, o, err)
	}
	return db, nil
}

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

// Collection adds the collection that r declares, and returns when its state has been read. A second one of the same plural and group is an error of
// code AlreadyExists; a prefix that holds something else is one of code Corrupt.
func (db *DB) Collection(r store.Resource) (*store.Collection, error) {
	r = r.WithDefaults()
	name := r.QualifiedName()
	if db.life.Err() != nil {
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Op: name, Message: "the database is closed"}
	}
	b := newBackend(db, r)
	db.mu.Lock()
	taken := db.collections[name] != nil
	if !taken {
		db.collections[name] = b
	}
	db.mu.Unlock()
	if taken {
		return nil, &listwatch.Error{Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name)}
	}
	life, stop := context.WithCancel(db.life)
	if err := db.begin(life, b); err != nil {
		stop()
		db.mu.Lock()
		delete(db.collections, name)
		db.mu.Unlock()
		return nil, failed(db.life, name, err)
	}
	context.AfterFunc(db.life, stop)
	s := b.Stats()
	db.options.Trace.Loaded(name, s.Objects, int64(s.Floor), int64(s.Version), time.Since(b.began))
	return store.New(r, b), nil
}

// begin reads the state of b and follows it until life ends. It returns when the log has come as far as etcd is now, so that the history that it began
// with is there.
func (db *DB) begin(life context.Context, b *backend) error {
	if err := b.load(life); err != nil {
		return err
	}
	db.work.Go(func() { b.run(life) })
	if err := b.catchUp(life); err != nil {
		return err
	}
	return b.checkKeys()
}

// Ready returns nil if every collection can be read as it is now, within 3 seconds. Otherwise it says why not: etcd is lost, or this server lags.
func (db *DB) Ready(ctx context.Context) error {
	for _, b := range db.all() {
		if err := b.catchUp(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// Version returns the newest that every collection has come to; zero where there is none.
func (db *DB) Version() listwatch.Version {
	var v listwatch.Version
	for i, b := range db.all() {
		if h := b.head.Version(); i == 0 || h < v {
			v = h
		}
	}
	return v
}

// Epoch tells this cluster from others.
func (db *DB) Epoch() string { return fmt.Sprintf("%x", db.cluster) }

// Compact forgets all history in memory: a watch from any version before the newest is Expired. What etcd keeps stays; to compact that is for
// who owns it.
func (db *DB) Compact() {
	for _, b := range db.all() {
		_ = b.catchUp(db.life) // else what it does not have yet would be history afterwards; where etcd is lost, so be it
		b.Compact()
	}
}

// Close ends the watches of etcd and the connection. Watchers stay as they are and see nothing more.
func (db *DB) Close() error {
	db.end()
	db.work.Wait()
	return db.client.Close()
}

func (db *DB) all() []*backend {
	db.mu.Lock()
	defer db.mu.Unlock()
	all := make([]*backend, 0, len(db.collections))
	for _, b := range db.collections {
		all = append(all, b)
	}
	return all
}
