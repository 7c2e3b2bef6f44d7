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
	"strconv"
	"strings"
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
	members   int

	url      *url.URL   // the parsed clientURL; set by check
	reserved []net.Conn // each keeps a port in use for a member; see reserve
}

// check validates the flags. clientURL must be a loopback address, because there is no
// authentication.
func (o *options) check() error {
	if o.members < 1 || o.members > 7 || o.members%2 == 0 {
		return fmt.Errorf("--members %d: must be 1, 3, 5 or 7; an even number survives no more failures than the odd "+
			"number below it", o.members)
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
	if o.members > 1 && o.dataDir != "" && u.Port() == "0" {
		return fmt.Errorf("--client %s: several members with --data need a fixed port, because the data has the "+
			"addresses of the members", o.clientURL)
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
	defer o.release()
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
			return o.explain(err)
		}
		members = append(members, e)
		go func() { failed <- <-e.Err() }() // returns at the latest when e is closed
	}
	var urls []string
	for _, e := range members {
		select {
		case <-e.Server.ReadyNotify():
		case err := <-failed:
			return o.explain(err)
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
		return o.explain(err)
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

// checkUnused returns an error if another process uses the data in dir. Without this check, etcd
// would wait silently for the other process.
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

// configs creates the directories of the members, and returns the configuration of each member. A
// single member has its data in dir, as with the program etcd. Several members have subdirectories.
func (o *options) configs(dir string) ([]*embed.Config, error) {
	if n := membersIn(dir); n > 0 && n != o.members {
		return nil, fmt.Errorf("--data %s has the data of a cluster with %d members: use --members %d, or another "+
			"directory", dir, n, n)
	}
	clients, peers, err := o.urls()
	if err != nil {
		return nil, err
	}
	configs := make([]*embed.Config, o.members)
	var cluster []string
	for i := range configs {
		c := embed.NewConfig()
		c.Name, c.Dir = memberName(i), dir
		if o.members > 1 {
			c.Dir = filepath.Join(dir, c.Name)
		}
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return nil, err
		}
		if err := checkUnused(c.Dir); err != nil {
			return nil, err
		}
		c.UnsafeNoFsync = o.dataDir == "" // temporary data does not have to survive a crash
		c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		c.ListenClientUrls, c.AdvertiseClientUrls = clients[i:i+1], clients[i:i+1]
		c.ListenPeerUrls, c.AdvertisePeerUrls = peers[i:i+1], peers[i:i+1]
		c.AutoCompactionMode, c.AutoCompactionRetention = "periodic", "5m" // like kube-apiserver
		cluster = append(cluster, c.InitialClusterFromName(c.Name))
		configs[i] = c
	}
	for _, c := range configs {
		c.InitialCluster = strings.Join(cluster, ",")
	}
	return configs, nil
}

// membersIn returns the number of members that have their data in dir.
func membersIn(dir string) int {
	if exists(filepath.Join(dir, "member")) {
		return 1
	}
	n := 0
	for exists(filepath.Join(dir, memberName(n))) {
		n++
	}
	return n
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// memberName returns the name of member i and of its subdirectory.
func memberName(i int) string { return fmt.Sprint("member-", i+1) }

// urls returns the URLs of the members for clients and for each other. If there are several
// members, each uses two consecutive ports, and the first member has the usual ports of etcd.
func (o *options) urls() (clients, peers []url.URL, err error) {
	if o.members == 1 {
		// A single member has no peers, but etcd requires the URL.
		return []url.URL{*o.url}, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}, nil
	}
	port, err := strconv.Atoi(o.url.Port())
	if err != nil {
		return nil, nil, err
	}
	for i := range 2 * o.members {
		at := url.URL{Scheme: "http", Host: net.JoinHostPort(o.url.Hostname(), strconv.Itoa(port+i))}
		if port == 0 {
			// A member must know the ports of the others before it starts.
			if at.Host, err = o.reserve(); err != nil {
				return nil, nil, err
			}
		}
		if i%2 == 0 {
			clients = append(clients, at)
		} else {
			peers = append(peers, at)
		}
	}
	return clients, peers, nil
}

// reserve returns an address with a free port, at which a member can listen. Until release is
// called, the system gives the port to no other process that requests any free port, because a
// connection that was accepted at the port uses it.
func (o *options) reserve() (addr string, err error) {
	l, err := net.Listen("tcp", net.JoinHostPort(o.url.Hostname(), "0"))
	if err != nil {
		return "", err
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return "", err
	}
	defer c.Close()
	accepted, err := l.Accept()
	if err != nil {
		return "", err
	}
	o.reserved = append(o.reserved, accepted)
	return l.Addr().String(), nil
}

func (o *options) release() {
	for _, c := range o.reserved {
		c.Close()
	}
}

// explain adds advice to err.
func (o *options) explain(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		ports := o.clientURL
		if o.members > 1 {
			ports = fmt.Sprintf("one of the %d ports from %s on", 2*o.members, o.clientURL)
		}
		return fmt.Errorf("%s is in use, perhaps by another etcd: choose another port with --client, or "+
			"http://127.0.0.1:0 for any: %w", ports, err)
	}
	return err
}
