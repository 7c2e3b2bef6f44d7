package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// defaultClient is etcd's usual URL for clients.
const defaultClient = "http://127.0.0.1:2379"

// options holds the flags.
type options struct {
	dataDir   string
	clientURL string
	members   int
	retention time.Duration

	url *url.URL // the parsed clientURL; set by check
}

// check validates the flags. clientURL must be a loopback address, because there is no
// authentication.
func (o *options) check() error {
	if o.members < 1 || o.members > 7 || o.members%2 == 0 {
		return fmt.Errorf("--members %d: must be 1, 3, 5 or 7; an even number survives no more failures than the odd "+
			"number below it", o.members)
	}
	if o.retention < time.Second {
		return fmt.Errorf("--retention %v: must be at least a second, for example 1h", o.retention)
	}
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
	if o.members > 1 && u.Port() == "0" {
		return fmt.Errorf("--client %s: several members need a fixed port, because they know each other's", o.clientURL)
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
	configs, err := o.configs(dir)
	if err != nil {
		return err
	}
	members := make([]*embed.Etcd, 0, len(configs))
	defer func() { closeAll(members) }()
	failed := make(chan error, len(configs))
	for _, c := range configs {
		e, err := embed.StartEtcd(c)
		if err != nil {
			return err
		}
		members = append(members, e)
		go func() { failed <- <-e.Err() }() // returns at the latest when e is closed
	}
	var urls []string
	for _, e := range members {
		select {
		case <-e.Server.ReadyNotify():
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
		urls = append(urls, "http://"+e.Clients[0].Addr().String())
	}
	fmt.Fprintf(out,
		"etcd is ready. To serve from it, run one or more servers, each with a different --addr:\n\n  listwatch "+
			"serve --etcd %s\n\n", strings.Join(urls, ","))
	if o.dataDir == "" {
		fmt.Fprintln(out, "All data is deleted at exit. Use --data DIR to keep it.")
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// closeAll closes one member after the other, so that each can hand its leadership over.
func closeAll(members []*embed.Etcd) {
	for _, e := range members {
		e.Close()
	}
}

// configs creates the directories of the members, and returns the configuration of each member. A
// single member has its data in dir, as with the program etcd. Several members have subdirectories.
func (o *options) configs(dir string) ([]*embed.Config, error) {
	clients, peers, err := o.urls()
	if err != nil {
		return nil, err
	}
	configs := make([]*embed.Config, o.members)
	var cluster []string
	for i := range configs {
		c := embed.NewConfig()
		c.Name, c.Dir = fmt.Sprint("member-", i+1), dir
		if o.members > 1 {
			c.Dir = filepath.Join(dir, c.Name)
		}
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return nil, err
		}
		c.UnsafeNoFsync = o.dataDir == "" // temporary data does not have to survive a crash
		c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		c.ListenClientUrls, c.AdvertiseClientUrls = clients[i:i+1], clients[i:i+1]
		c.ListenPeerUrls, c.AdvertisePeerUrls = peers[i:i+1], peers[i:i+1]
		c.AutoCompactionMode, c.AutoCompactionRetention = "periodic", o.retention.String()
		cluster = append(cluster, c.InitialClusterFromName(c.Name))
		configs[i] = c
	}
	for _, c := range configs {
		c.InitialCluster = strings.Join(cluster, ",")
	}
	return configs, nil
}

// urls returns the URLs of the members for clients and for each other. If there are several
// members, each uses two consecutive ports, starting with the port of clientURL.
func (o *options) urls() (clients, peers []url.URL, err error) {
	if o.members == 1 {
		// A single member has no peers, but etcd requires the URL.
		return []url.URL{*o.url}, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}, nil
	}
	port, err := strconv.Atoi(o.url.Port())
	for i := range o.members {
		at := func(port int) url.URL {
			return url.URL{Scheme: "http", Host: net.JoinHostPort(o.url.Hostname(), strconv.Itoa(port))}
		}
		clients, peers = append(clients, at(port+2*i)), append(peers, at(port+2*i+1))
	}
	return clients, peers, err
}
