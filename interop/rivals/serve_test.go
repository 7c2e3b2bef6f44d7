//go:build !race

// Package rivals runs a Kubernetes API server for benchmarks/rivals. The module of
// benchmarks/rivals cannot import the API server, because the two need different versions of their
// dependencies.
package rivals

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/transport/h2"
)

// serveEnv is the environment variable that makes TestServe run a server. With the value "h2" the
// server uses transport/h2, and with every other value its library's HTTP/2.
const serveEnv = "LISTWATCH_RIVALS_SERVE"

func TestMain(m *testing.M) {
	etcdtest.Main()
	os.Exit(m.Run())
}

// usage is the report that benchmarks/rivals expects from a server process.
type usage struct {
	CPU      time.Duration // in nanoseconds
	Resident int64         // in bytes
}

// TestServe runs a server with its etcd in another process. It prints "ready URL TOKEN", and then
// the usage of this process after each line of its standard input, until the input ends. Without
// serveEnv, it only tests that the server starts and can be measured.
func TestServe(t *testing.T) {
	o := apiserver.Options{Etcd: etcdtest.StartProcess(t).URL}
	if os.Getenv(serveEnv) == "h2" {
		o.Configure = func(hs *http.Server) { h2.Configure(hs, h2.Config{}) }
	}
	s := apiserver.StartWith(t, o)
	if os.Getenv(serveEnv) == "" {
		if u := readUsage(t); u.CPU <= 0 || u.Resident <= 0 {
			t.Errorf("got usage %+v, want positive values", u)
		}
		return
	}
	fmt.Println("ready", s.URL, s.Token)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := json.NewEncoder(os.Stdout).Encode(readUsage(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// readUsage reads the CPU time before it measures the memory, because that measurement includes a
// garbage collection, which is not work of the server.
func readUsage(t *testing.T) usage {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return usage{time.Duration(r.Utime.Nano() + r.Stime.Nano()), resident * int64(os.Getpagesize())}
}
