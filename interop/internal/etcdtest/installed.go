package etcdtest

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
)

// StartInstalled runs the program etcd that is installed on this machine until the test ends, and
// returns its URL. Distributions have old versions, such as 3.4. If there is none, the test is
// skipped.
func StartInstalled(t testing.TB) (url string) {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	url, peer := "http://"+ports.Address(t), "http://"+ports.Address(t)
	c := exec.Command(path, "--data-dir", t.TempDir(), "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); <-tick.C {
		if connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
			connection.Close()
			return url
		}
	}
	t.Fatal("etcd is not ready")
	return ""
}
