//go:build !race

package apiserver

import (
	"net/url"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// startEtcd starts an etcd of one member that ends with the test, and returns its URL.
func startEtcd(t testing.TB) string {
	t.Helper()
	c := embed.NewConfig()
	// It is not there to survive a crash.
	c.Dir, c.UnsafeNoFsync = t.TempDir(), true
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	// Nobody dials what it advertises: it is alone, and its port is asked for below.
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls = anywhere, anywhere
	c.ListenPeerUrls, c.AdvertisePeerUrls = anywhere, anywhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		t.Fatal(err)
	case <-time.After(startTime):
		t.Fatal("etcd is not ready")
	}
	return "http://" + e.Clients[0].Addr().String()
}
