package servecmd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/spf13/pflag"
)

// A database is a store that serve can serve.
type database interface {
	Collection(r store.CollectionSpec) (*store.Collection, error)
	Version() listwatch.Version
	Compact()
	Close() error
}

// storeOptions are the flags of serve about what keeps the objects.
type storeOptions struct {
	data         string
	restored     bool
	etcd         etcdOptions
	historyAge   time.Duration
	historyBytes cli.ByteSize
}

func (o *storeOptions) register(f *pflag.FlagSet) {
	o.historyBytes = 256 << 20
	f.StringVar(&o.data, "data", "", "file to keep objects and their history in, made where there is none; empty: memory")
	o.etcd.register(f)
	f.BoolVar(&o.restored, "data-restored", false, "the file of --data, which must be there, is an old copy: forget its history, so that every client lists again; give it once")
	f.DurationVar(&o.historyAge, "history-age", 5*time.Minute, "how long a change can be watched from; zero: the default; negative: for ever")
	f.Var(&o.historyBytes, "history-bytes", "how much history each collection keeps at most; zero: the default; negative: without limit")
}

// open opens the store. What opens must be closed.
func (o *storeOptions) open(ctx context.Context, log *slog.Logger) (database, error) {
	if err := o.etcd.check(); err != nil {
		return nil, err
	}
	switch {
	case o.data != "" && len(o.etcd.endpoints) > 0:
		return nil, cli.Usagef("--data and --etcd exclude each other")
	case o.restored && o.data == "":
		return nil, cli.Usagef("--data-restored is about the file of --data, which is not given")
	case len(o.etcd.endpoints) > 0:
		db, err := o.etcd.open(ctx, log, o.historyAge, int64(o.historyBytes))
		if err != nil {
			return nil, withExitCode(err)
		}
		return db, nil
	case o.data == "":
		return memoryDatabase{memory.Open(memory.Options{HistoryAge: o.historyAge, HistoryBytes: int64(o.historyBytes)})}, nil
	}
	db, err := bolt.Open(o.data, bolt.Options{HistoryAge: o.historyAge, HistoryBytes: int64(o.historyBytes), RestoredFromBackup: o.restored})
	if err != nil {
		return nil, withExitCode(err)
	}
	return db, nil
}

// openCollection opens the collection that r declares. Where that may take long, the end of ctx ends it.
func openCollection(ctx context.Context, db database, r store.CollectionSpec) (*store.Collection, error) {
	if db, ok := db.(interface {
		CollectionContext(ctx context.Context, r store.CollectionSpec) (*store.Collection, error)
	}); ok {
		return db.CollectionContext(ctx, r)
	}
	return db.Collection(r)
}

// startError is err of a server that does not start, or what a signal meanwhile means.
func startError(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return errors.New("was told to end before it was ready")
	}
	return err
}

// inMemory is a database that needs no closing.
type memoryDatabase struct{ *memory.DB }

func (memoryDatabase) Close() error { return nil }

// dataError tells errors of a store that go by themselves from those that don't.
func withExitCode(err error) error {
	for _, code := range []listwatch.Code{listwatch.Invalid, listwatch.Unsupported, listwatch.Corrupt, listwatch.Forbidden, listwatch.Unauthorized} {
		if errors.Is(err, code) {
			return cli.WithCode(cli.ExitUnservable, err)
		}
	}
	return err
}
