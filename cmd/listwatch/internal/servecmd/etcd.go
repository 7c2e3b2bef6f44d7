package servecmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/reload"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/store/etcd"
)

// etcdOptions contains the flags about etcd.
type etcdOptions struct {
	endpoints                []string
	prefix, layout           string
	readOnly, skipUnreadable bool
	username, passwordFile   string
	caFile, cert, key        string
	history                  int64
	isSet                    func(flag string) bool
}

func (o *etcdOptions) register(f *pflag.FlagSet) {
	f.StringSliceVar(&o.endpoints, "etcd", nil,
		"`URLs` of etcd members, to keep objects in etcd; several servers can share them")
	f.StringVar(&o.prefix, "etcd-prefix", etcd.DefaultPrefix, "`prefix` of every key in etcd")
	f.StringVar(&o.layout, "etcd-layout", "listwatch",
		"`layout` of the keys: listwatch, or kubernetes for the layout of kube-apiserver")
	f.BoolVar(&o.readOnly, "etcd-read-only", false, "refuse all writes")
	f.BoolVar(&o.skipUnreadable, "etcd-skip-unreadable", false,
		"start even if keys below the prefix contain no objects, and ignore those keys")
	f.StringVar(&o.username, "etcd-user", "", "etcd `user`")
	f.StringVar(&o.passwordFile, "etcd-password-file", "", "`file` with the password of --etcd-user")
	f.StringVar(&o.caFile, "etcd-ca", "",
		"PEM `file` with the CAs of the etcd members; if empty, the CAs of the system")
	f.StringVar(&o.cert, "etcd-cert", "", "PEM `file` with a client certificate for etcd")
	f.StringVar(&o.key, "etcd-key", "", "PEM `file` with the key of --etcd-cert")
	f.Int64Var(&o.history, "etcd-history", etcd.DefaultHistory,
		"`number` of revisions before the newest to load as history at the start; 0 means the default, a negative number none")
	o.isSet = f.Changed
}

// check returns an error for flags that contradict each other.
func (o *etcdOptions) check() error {
	if len(o.endpoints) == 0 {
		for _, name := range []string{
			"prefix", "layout", "read-only", "skip-unreadable", "user", "password-file", "ca", "cert", "key", "history",
		} {
			if o.isSet("etcd-" + name) {
				return cli.Usagef("--etcd-%s requires --etcd", name)
			}
		}
		return nil
	}
	switch {
	case o.layout != "listwatch" && o.layout != "kubernetes":
		return cli.Usagef(`--etcd-layout %q: must be "listwatch" or "kubernetes"`, o.layout)
	case (o.username == "") != (o.passwordFile == ""):
		return cli.Usagef("--etcd-user and --etcd-password-file must be set together")
	case (o.cert == "") != (o.key == ""):
		return cli.Usagef("--etcd-cert and --etcd-key must be set together")
	}
	for _, e := range o.endpoints {
		if scheme, _, ok := strings.Cut(e, "://"); ok && scheme != "http" && scheme != "https" {
			return cli.Usagef("--etcd %s: must be an http or https URL", e)
		}
	}
	return nil
}

// open connects to etcd. ctx limits the time to connect. f.Log receives messages about the
// connection, even after open has returned.
func (o *etcdOptions) open(ctx context.Context, f *listen.Listeners, history listwatch.Retention) (*etcd.DB, error) {
	options := etcd.Options{
		Endpoints: o.endpoints, Prefix: o.prefix, ReadOnly: o.readOnly, SkipUnreadable: o.skipUnreadable,
		Username: o.username, HistoryRevisions: o.history,
		History: history, Trace: etcdTrace(f.Log, f.Metrics, f.Progress),
	}
	if o.layout == "kubernetes" {
		options.Layout = etcd.KubernetesLayout
	}
	var err error
	if options.PasswordFunc, err = o.password(&f.Files); err != nil {
		return nil, err
	}
	if options.TLSConfig, err = o.tls(&f.Files); err != nil {
		return nil, err
	}
	db, err := etcd.Open(ctx, options)
	if err == nil {
		f.Metrics.AddStore(func() metrics.StoreStats { return etcdStats(db.Health()) })
	}
	return db, err
}

func etcdStats(h etcd.Health) metrics.StoreStats {
	s := metrics.StoreStats{Members: h.Members, HealthyMembers: h.HealthyMembers, Lost: h.Collections - h.Following}
	if h.Revision > h.Version {
		s.Lag = int64(h.Revision - h.Version)
	}
	return s
}

// tls returns a function for etcd.Options.TLSConfig, or nil if no flag configures TLS. It adds the
// certificate files to files.
func (o *etcdOptions) tls(files *reload.Files) (func() *tls.Config, error) {
	if o.caFile == "" && o.cert == "" {
		return nil, nil
	}
	return files.AddTLS(&tls.Config{MinVersion: tls.VersionTLS12}, reload.File{Flag: "--etcd-ca", Name: o.caFile},
		reload.File{Flag: "--etcd-cert", Name: o.cert}, reload.File{Flag: "--etcd-key", Name: o.key})
}

// password returns a function for etcd.Options.PasswordFunc, or nil if there is no password. It
// adds the password file to files.
func (o *etcdOptions) password(files *reload.Files) (func() string, error) {
	if o.passwordFile == "" {
		return nil, nil
	}
	var current atomic.Value
	err := files.Add(func(contents [][]byte) error {
		password := strings.TrimRight(string(contents[0]), "\r\n")
		if password == "" {
			return errors.New("the file contains no password")
		}
		current.Store(password)
		return nil
	}, reload.File{Flag: "--etcd-password-file", Name: o.passwordFile})
	return func() string { return current.Load().(string) }, err
}

// loadLogInterval is the number of loaded objects between two log lines.
const loadLogInterval = 20_000

// etcdTrace returns the hooks of the store. progress is called while collections are loaded.
func etcdTrace(log *slog.Logger, m *metrics.Metrics, progress func(step string)) *etcd.Trace {
	return &etcd.Trace{
		Committed: func(_ string, took time.Duration, err error) { m.Committed(1, took, err) },
		Loading: func(collection string, done, total int64) {
			progress(fmt.Sprintf("%s: %d of %d objects read from etcd", collection, done, total))
			if done%loadLogInterval == 0 && done < total {
				log.Info("loading", "collection", collection, "objects", done, "of", total)
			}
		},
		Replaying: func(collection string, revision, newest int64) {
			progress(fmt.Sprintf("%s: history received up to revision %d of %d", collection, revision, newest))
			log.Info("receiving the history", "collection", collection, "revision", revision, "of", newest)
		},
		Loaded: func(collection string, objects int, floor, version int64, took time.Duration) {
			level := slog.LevelDebug
			if objects > 0 {
				level = slog.LevelInfo
			}
			log.Log(context.Background(), level, "loaded", "collection", collection, "objects", objects, "version",
				version, "watchFrom", floor, "took", took.Round(time.Millisecond))
		},
		WatchLost: func(collection string, err error) {
			log.Warn("lost the watch of etcd", "collection", collection, "error", err)
		},
		WatchResumed: func(collection string, revision int64) {
			log.Debug("watching etcd", "collection", collection, "from", revision)
		},
		Relisted: func(collection string, reason error) {
			log.Warn("some events cannot be recovered: listing again; watches expire", "collection", collection,
				"reason", reason)
		},
		DuplicatesDropped: func(collection string, revision int64) {
			log.Debug("etcd repeated events", "collection", collection, "version", revision)
		},
		Unreadable: func(collection, key string, err error) {
			log.Warn("a key contains no object", "collection", collection, "key", key, "error", err)
		},
	}
}
