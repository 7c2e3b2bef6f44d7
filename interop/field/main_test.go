//go:build !race

package field

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/component-base/cli"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectlEnv is an environment variable that makes the test binary act as kubectl.
const kubectlEnv = "LISTWATCH_INTEROP_KUBECTL"

func TestMain(m *testing.M) {
	if os.Getenv(kubectlEnv) != "" {
		if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
		return
	}
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// kubectl runs kubectl at the endpoint. It returns the output and the time that it took.
func (e *endpoint) kubectl(t *testing.T, input string, args ...string) (stdout, stderr string, took time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, append([]string{
		"--server", e.config.Host, "--insecure-skip-tls-verify", "--token", e.config.BearerToken,
	}, args...)...)
	c.Env = []string{kubectlEnv + "=1", "HOME=" + e.home, "TMPDIR=" + e.home, "KUBECONFIG=/dev/null"}
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader([]byte(input)), &out, &errs
	begin := time.Now()
	err = c.Run()
	took = time.Since(begin)
	if err != nil {
		t.Fatalf("%s: kubectl %q: %v\n%s%s", e.name, args, err, &out, &errs)
	}
	return out.String(), errs.String(), took
}
