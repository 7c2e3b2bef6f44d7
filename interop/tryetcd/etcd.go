package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// defaultClient is etcd's usual URL for clients.
const defaultClient = "http://127.0.0.1:2379"

// options holds the flags.
type options struct {
	dataDir   string
	clientURL string
	url       *url.URL // the parsed clientURL; set by check
}

// check validates clientURL. It must be a loopback address, because there is no authentication.
func (o *options) check() error {
	u, err := url.Parse(o.clientURL)
	if err == nil && (u.Scheme != "http" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil) {
		err = errors.New("must have the form http://ADDRESS:PORT")
	}
	if err == nil {
		if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
			err = errors.New("must be a loopback address, because clients are not authenticated")
		}
	}
	if err != nil {
		return fmt.Errorf("--client %s: %w, for example %s", o.clientURL, err, defaultClient)
	}
	o.url = u
	return nil
}

// serve runs etcd until ctx ends.
func (o *options) serve(ctx context.Context, out io.Writer) (err error) {
	dir := o.dataDir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tryetcd-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if err := checkUnused(dir); err != nil {
		return err
	}
	e, err := embed.StartEtcd(o.config(dir))
	if err != nil {
		return o.explain(err)
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return o.explain(err)
	case <-ctx.Done():
		return nil
	}
	at := url.URL{Scheme: "http", Host: e.Clients[0].Addr().String()}
	fmt.Fprintf(out, "etcd is ready. To serve from it, run one or more servers, each with a different --addr:\n\n  listwatch serve --etcd %s\n\n", &at)
	if o.dataDir == "" {
		fmt.Fprintln(out, "All data is deleted at exit. Use --data DIR to keep it.")
	}
	select {
	case err := <-e.Err():
		return o.explain(err)
	case <-ctx.Done():
		return nil
	}
}

// checkUnused returns an error if another process uses the data in dir. Otherwise etcd
// would wait without a message.
func checkUnused(dir string) error {
	file := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil // the directory is new, or etcd reports what is wrong with it
	}
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("--data %s is in use by another process: stop it, or choose another directory", dir)
	case err != nil:
		return fmt.Errorf("--data %s: %w", dir, err)
	}
	return db.Close()
}

// config returns the configuration of a single member.
func (o *options) config(dir string) *embed.Config {
	c := embed.NewConfig()
	c.Dir = dir
	c.UnsafeNoFsync = o.dataDir == "" // temporary data does not have to survive a crash
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.ListenClientUrls = []url.URL{*o.url}
	c.AdvertiseClientUrls = c.ListenClientUrls
	// A single member has no peers, but etcd requires these URLs.
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenPeerUrls, c.AdvertisePeerUrls = anywhere, anywhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.AutoCompactionMode, c.AutoCompactionRetention = "periodic", "5m" // like kube-apiserver
	return c
}

// explain adds advice to err.
func (o *options) explain(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use, perhaps by another etcd: choose another port with --client, or http://127.0.0.1:0 for any: %w", o.clientURL, err)
	}
	return err
}
