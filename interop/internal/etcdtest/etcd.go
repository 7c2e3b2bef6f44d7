package etcdtest

import (
	"math"
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// startTimeout limits the time until etcd is ready.
const startTimeout = 5 * time.Minute

// A Server is a single-member etcd in this process, with a client.
type Server struct {
	*clientv3.Client
	// URL is the address of the server.
	URL string

	t      testing.TB
	config *embed.Config
	etcd   *embed.Etcd
}

// Start starts an etcd that is stopped at the end of the test. If change is not nil, it
// changes the configuration.
func Start(t testing.TB, change func(*embed.Config)) *Server {
	t.Helper()
	c := embed.NewConfig()
	// The data need not survive a crash.
	c.Dir, c.UnsafeNoFsync = t.TempDir(), true
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	// The advertised addresses are not used, because there is no other member, and clients
	// use s.URL.
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls = anywhere, anywhere
	c.ListenPeerUrls, c.AdvertisePeerUrls = anywhere, anywhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	if change != nil {
		change(c)
	}
	s := &Server{t: t, config: c}
	s.start()
	s.URL = c.ListenClientUrls[0].Scheme + "://" + s.etcd.Clients[0].Addr().String()
	t.Cleanup(func() { s.Stop() })
	s.Client = Dial(t, s.URL)
	return s
}

func (s *Server) start() {
	s.t.Helper()
	e, err := embed.StartEtcd(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.etcd = e
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		s.t.Fatal(err)
	case <-time.After(startTimeout):
		s.t.Fatal("etcd is not ready")
	}
}

// Stop stops the server. Restart starts it again.
func (s *Server) Stop() {
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// Restart starts a stopped server at the same address and with the same data.
func (s *Server) Restart() {
	s.t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	s.config.ListenClientUrls = []url.URL{*u}
	s.start()
}

// Dial returns a client of the servers at urls, which is closed at the end of the test.
func Dial(t testing.TB, urls ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: urls, DialTimeout: startTimeout, MaxCallSendMsgSize: math.MaxInt32, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func urls(text string) []url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return []url.URL{*u}
}
