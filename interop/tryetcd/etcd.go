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

// defaultClient is where etcd listens by custom.
const defaultClient = "http://127.0.0.1:2379"

// options are the command line.
type options struct {
	data   string
	client string
	url    *url.URL // client; set by check
}

// check reads the URL. Only loopback will do: nobody is asked who he is.
func (o *options) check() error {
	u, err := url.Parse(o.client)
	if err == nil && (u.Scheme != "http" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil) {
		err = errors.New("want http, an address and a port")
	}
	if err == nil {
		if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
			err = errors.New("want an address of loopback, for everybody who reaches it may do everything")
		}
	}
	if err != nil {
		return fmt.Errorf("--client %s: %w, as in %s", o.client, err, defaultClient)
	}
	o.url = u
	return nil
}

// serve runs etcd until ctx ends.
func (o *options) serve(ctx context.Context, out io.Writer) (err error) {
	dir := o.data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tryetcd-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if err := free(dir); err != nil {
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
	fmt.Fprintf(out, "etcd is ready. Serve from it, once or more often, each at an address of its own:\n\n  listwatch serve --etcd %s\n\n", &at)
	if o.data == "" {
		fmt.Fprintln(out, "What is written is gone when this ends: --data DIR keeps it.")
	}
	select {
	case err := <-e.Err():
		return o.explain(err)
	case <-ctx.Done():
		return nil
	}
}

// free makes sure that no process has the data in dir: etcd would wait for it without a word.
func free(dir string) error {
	file := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil // a new one, or one that etcd has something to say about
	}
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("--data %s is in use by another process: end that, or choose another directory", dir)
	case err != nil:
		return fmt.Errorf("--data %s: %w", dir, err)
	}
	return db.Close()
}

// config is that of a member that is alone.
func (o *options) config(dir string) *embed.Config {
	c := embed.NewConfig()
	c.Dir = dir
	c.UnsafeNoFsync = o.data == "" // what nobody keeps need not survive a crash
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.ListenClientUrls = []url.URL{*o.url}
	c.AdvertiseClientUrls = c.ListenClientUrls
	// It has no peers, but listens for them all the same. Nobody dials what it advertises.
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenPeerUrls, c.AdvertisePeerUrls = anywhere, anywhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.AutoCompactionMode, c.AutoCompactionRetention = "periodic", "5m" // as kube-apiserver has it
	return c
}

// explain says what to do about err.
func (o *options) explain(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use, perhaps by another etcd: choose another port with --client, or http://127.0.0.1:0 for any: %w", o.client, err)
	}
	return err
}
