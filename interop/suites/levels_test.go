//go:build !race

package suites

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
)

// TestKubeAPIServerHasLevelOne runs the conformance suite as docs/conformance.md says. A
// kube-apiserver has no URL that drops its history, so the command of --restart compacts etcd while
// the server is down.
func TestKubeAPIServerHasLevelOne(t *testing.T) {
	path := os.Getenv(apiServer)
	if path == "" {
		t.Skip(apiServer + " names no program; use make long-suites")
	}
	etcd := etcdtest.Start(t, nil)
	server := kubeapiserver.StartWith(t, path, kubeapiserver.Options{Etcd: etcd.URL})
	restart := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Stop()
		state, err := etcd.Get(r.Context(), "any")
		if err == nil {
			_, err = etcd.Compact(r.Context(), state.Header.Revision)
		}
		if err == nil {
			err = server.Restart()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer restart.Close()
	suite := exec.CommandContext(t.Context(), program.Build(t), "conformance", "server",
		"--kubeconfig", server.Kubeconfig, "--level", "1", "--restart", "curl -fsS -X POST "+restart.URL)
	report, err := suite.CombinedOutput()
	if t.Logf("%s", report); err != nil {
		t.Error(err)
	}
}
