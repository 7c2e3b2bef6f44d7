package servecmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/store/etcd"
	"github.com/spf13/pflag"
)

// etcdOptions are the flags of serve about objects that are kept in etcd.
type etcdOptions struct {
	endpoints                []string
	prefix, layout           string
	readOnly, skipUnreadable bool
	user, passwordFile       string
	caFile, cert, key        string
	history                  int64
	isSet                    func(flag string) bool
}

func (o *etcdOptions) register(f *pflag.FlagSet) {
	f.StringSliceVar(&o.endpoints, "etcd", nil, "URLs of etcd's members, to keep objects in etcd, which other servers may use as well; empty: memory")
	f.StringVar(&o.prefix, "etcd-prefix", etcd.DefaultPrefix, "what every key in etcd begins with")
	f.StringVar(&o.layout, "etcd-layout", "listwatch", `where below the prefix a collection is: "listwatch", or "kubernetes", as kube-apiserver does it`)
	f.BoolVar(&o.readOnly, "etcd-read-only", false, "refuse all writes")
	f.BoolVar(&o.skipUnreadable, "etcd-skip-unreadable", false, "start even where keys below the prefix hold something else than objects, which are not shown")
	f.StringVar(&o.user, "etcd-user", "", "user of etcd")
	f.StringVar(&o.passwordFile, "etcd-password-file", "", "file with the password of --etcd-user")
	f.StringVar(&o.caFile, "etcd-ca", "", "file with the CAs of etcd's members, in PEM; empty: those of the system")
	f.StringVar(&o.cert, "etcd-cert", "", "file with a client certificate for etcd, in PEM")
	f.StringVar(&o.key, "etcd-key", "", "file with the key of --etcd-cert, in PEM")
	f.Int64Var(&o.history, "etcd-history", etcd.DefaultHistory, "how many revisions of etcd before the newest can be watched from after the start; zero: the default; negative: none")
	o.isSet = f.Changed
}

// check refuses flags that don't go together.
func (o *etcdOptions) check() error {
	if len(o.endpoints) == 0 {
		for _, name := range []string{"prefix", "layout", "read-only", "skip-unreadable", "user", "password-file", "ca", "cert", "key", "history"} {
			if o.isSet("etcd-" + name) {
				return cli.Usagef("--etcd-%s needs --etcd", name)
			}
		}
		return nil
	}
	switch {
	case o.layout != "listwatch" && o.layout != "kubernetes":
		return cli.Usagef(`--etcd-layout %q: want "listwatch" or "kubernetes"`, o.layout)
	case (o.user == "") != (o.passwordFile == ""):
		return cli.Usagef("--etcd-user and --etcd-password-file go together")
	case (o.cert == "") != (o.key == ""):
		return cli.Usagef("--etcd-cert and --etcd-key go together")
	}
	for _, e := range o.endpoints {
		if scheme, _, ok := strings.Cut(e, "://"); ok && scheme != "http" && scheme != "https" {
			return cli.Usagef("--etcd %s: want http or https", e)
		}
	}
	return nil
}

// open connects to etcd. ctx bounds that; log gets what happens then.
func (o *etcdOptions) open(ctx context.Context, log *slog.Logger, age time.Duration, bytes int64) (*etcd.DB, error) {
	options := etcd.Options{
		Endpoints: o.endpoints, Prefix: o.prefix, ReadOnly: o.readOnly, SkipUnreadable: o.skipUnreadable, Username: o.user, HistoryRevisions: o.history,
		HistoryAge: age, HistoryBytes: bytes, Trace: etcdTrace(log),
	}
	if o.layout == "kubernetes" {
		options.Layout = etcd.KubernetesLayout
	}
	if o.passwordFile != "" {
		password, err := os.ReadFile(o.passwordFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-password-file: %w", err)
		}
		options.Password = strings.TrimRight(string(password), "\r\n")
	}
	var err error
	if options.TLS, err = o.tls(); err != nil {
		return nil, err
	}
	return etcd.Open(ctx, options)
}

func (o *etcdOptions) tls() (*tls.Config, error) {
	if o.caFile == "" && o.cert == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.caFile != "" {
		pem, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("--etcd-ca " + o.caFile + ": there is no certificate in it")
		}
	}
	if o.cert != "" {
		cert, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cert %s, --etcd-key %s: %w", o.cert, o.key, err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// progressEvery is how many objects lie between two lines about a load.
const loadLogInterval = 20_000

func etcdTrace(log *slog.Logger) *etcd.Trace {
	return &etcd.Trace{
		Loading: func(collection string, done, total int64) {
			if done%loadLogInterval == 0 && done < total {
				log.Info("loading", "collection", collection, "objects", done, "of", total)
			}
		},
		Loaded: func(collection string, objects int, floor, version int64, took time.Duration) {
			level := slog.LevelDebug
			if objects > 0 {
				level = slog.LevelInfo
			}
			log.Log(context.Background(), level, "loaded", "collection", collection, "objects", objects, "version", version, "watchFrom", floor, "took", took.Round(time.Millisecond))
		},
		WatchLost: func(collection string, err error) {
			log.Warn("the watch of etcd was lost", "collection", collection, "error", err)
		},
		WatchResumed: func(collection string, revision int64) {
			log.Debug("watching etcd", "collection", collection, "from", revision)
		},
		Relisted: func(collection string, reason error) {
			log.Warn("events were lost for good: listing again, and watches expire", "collection", collection, "reason", reason)
		},
		DuplicatesDropped: func(collection string, revision int64) {
			log.Debug("etcd sent events again", "collection", collection, "version", revision)
		},
		Unreadable: func(collection, key string, err error) {
			log.Warn("a key holds no object", "collection", collection, "key", key, "error", err)
		},
	}
}
