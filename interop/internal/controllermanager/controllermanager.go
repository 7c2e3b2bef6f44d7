//go:build !race

// Package controllermanager runs kube-controller-manager for tests. The tests do not build this
// program.
package controllermanager

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// logTail is the length of the end of the log that a failed test prints.
const logTail = 4000

// Start runs the kube-controller-manager at path, with only the named controllers, until the test
// ends. It returns before the controllers have started to work.
func Start(t testing.TB, path, kubeconfig string, controllers ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "--kubeconfig="+kubeconfig, "--controllers="+strings.Join(controllers, ","),
		// There is no other instance, and nothing connects to this one.
		"--leader-elect=false", "--secure-port=0", "--bind-address=127.0.0.1", "--authentication-skip-lookup",
		"--cluster-signing-cert-file=", "--cluster-signing-key-file=",
		// Tests wait for the controllers, and the API server is not shared.
		"--kube-api-qps=1000", "--kube-api-burst=2000")
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // the process may have exited
		_ = c.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the end of the log of kube-controller-manager:\n%s", text[max(0, len(text)-logTail):])
		}
	})
}
