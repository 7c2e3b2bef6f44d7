package servecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/store/memory"
)

// A database is a store that serve can use.
type database interface {
	Collection(r store.CollectionSpec) (*store.Collection, error)
	Version() listwatch.Version
	Compact()
	Close() error
}

// storeOptions contains the flags about the store.
type storeOptions struct {
	data         string
	restored     bool
	etcd         etcdOptions
	history      cli.History
	quotaObjects int
	quotaBytes   cli.ByteSize
}

func (o *storeOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.data, "data", "",
		"`file` for objects and their history, created if necessary; if empty, they are in memory")
	o.etcd.register(f)
	f.BoolVar(&o.restored, "data-restored", false,
		"the existing file of --data is a backup: discard its history, so that every client lists again; set it for one start only")
	f.IntVar(&o.quotaObjects, "quota-objects", 0,
		"maximum `number` of objects of each resource; further ones are refused; 0 means no limit")
	f.Var(&o.quotaBytes, "quota-bytes", "maximum `size` of the objects of each resource together; 0 means no limit")
	o.history.Register(f)
}

// open opens the store. The caller must close it.
func (o *storeOptions) open(ctx context.Context, f *listen.Listeners) (database, error) {
	if err := o.etcd.check(); err != nil {
		return nil, err
	}
	// Configure sets f.Expired after this call, but before a collection is opened.
	expired := func(collection string, o *listwatch.Object) {
		if f.Expired != nil {
			f.Expired(collection, o)
		}
	}
	switch {
	case o.data != "" && len(o.etcd.endpoints) > 0:
		return nil, cli.Usagef("set either --data or --etcd, not both")
	case o.restored && o.data == "":
		return nil, cli.Usagef("--data-restored requires --data")
	case len(o.etcd.endpoints) > 0:
		db, err := o.etcd.open(ctx, f, o.history.Retention())
		if err != nil {
			return nil, withExitCode(err)
		}
		return db, nil
	case o.data == "":
		trace := &memory.Trace{Expired: expired}
		return memoryDatabase{memory.Open(memory.Options{History: o.history.Retention(), Trace: trace})}, nil
	}
	commits := failureLog{log: f.Log.With("file", o.data), message: "a write to the data file failed"}
	trace := &bolt.Trace{
		Loading: func(collection string, done, total int64) {
			f.Progress(fmt.Sprintf("%s: %d of %d records read from the data file", collection, done, total))
		},
		Committed: func(writes int, took time.Duration, err error) {
			f.Metrics.Committed(writes, took, err)
			commits.report(err)
		},
		Expired: expired,
	}
	db, err := bolt.Open(
		o.data, bolt.Options{History: o.history.Retention(), RestoredFromBackup: o.restored, Trace: trace})
	if errors.Is(err, bolt.ErrBackup) {
		err = fmt.Errorf("%w: set --data-restored for this start, and all clients list again", err)
	}
	if err != nil {
		return nil, withExitCode(err)
	}
	f.Metrics.AddStore(func() (s metrics.StoreStats) {
		s.FileBytes, s.FreeBytes = db.Size()
		return s
	})
	return db, nil
}

// openCollection opens the collection that r describes. If the store supports it, ctx can
// interrupt the loading.
func openCollection(ctx context.Context, db database, r store.CollectionSpec) (*store.Collection, error) {
	if db, ok := db.(interface {
		CollectionContext(ctx context.Context, r store.CollectionSpec) (*store.Collection, error)
	}); ok {
		return db.CollectionContext(ctx, r)
	}
	return db.Collection(r)
}

// startError returns err, or an error that reports the interruption if ctx has ended.
func startError(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return errors.New("interrupted before the server was ready")
	}
	return err
}

// A memoryDatabase is a database whose Close does nothing.
type memoryDatabase struct{ *memory.DB }

func (memoryDatabase) Close() error { return nil }

// withExitCode adds [cli.ExitUnservable] to errors that persist until an operator acts.
func withExitCode(err error) error {
	for _, code := range []listwatch.Code{
		listwatch.Invalid, listwatch.Unsupported, listwatch.Corrupt, listwatch.Forbidden, listwatch.Unauthorized,
	} {
		if errors.Is(err, code) {
			return cli.WithCode(cli.ExitUnservable, err)
		}
	}
	return err
}
