//go:build !race

package components

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/listwatch/listwatch/internal/testbuild"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// programs is the environment variable with the directory of Kubernetes' programs.
const programs = "LISTWATCH_KUBERNETES"

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestComponentsWorkThroughARelay runs the same steps with components at the kube-apiserver, and
// then with components at a relay that has the default flags.
func TestComponentsWorkThroughARelay(t *testing.T) {
	compare(t, etcdtest.Start(t, nil).URL)
}

// TestComponentsWorkThroughARelayOverOldEtcd does the same with an etcd that is too old to report
// its progress.
func TestComponentsWorkThroughARelayOverOldEtcd(t *testing.T) {
	compare(t, etcdtest.StartInstalled(t))
}

// slack is added to twice the time that a deletion takes directly. The sum is the limit for the
// relay.
const slack = 50 * time.Millisecond

func compare(t *testing.T, etcd string) {
	directory := os.Getenv(programs)
	if directory == "" {
		t.Skip(programs + " names no directory; use make long-components")
	}
	s := kubeapiserver.StartWith(t, filepath.Join(directory, "kube-apiserver"), kubeapiserver.Options{Etcd: etcd})
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 10000, 10000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	startNodes(t, client)
	relay := program.Start(t, testbuild.Program(t, "../../cmd/listwatch"), "relay", "--cluster", "--kubeconfig", s.Kubeconfig,
		"--addr", "", "--tls-addr", "127.0.0.1:0", "--tls-self-signed")
	times := map[string]map[string]time.Duration{}
	for _, lane := range []struct{ name, url string }{{"direct", s.URL}, {"relayed", relay}} {
		t.Run(lane.name, func(t *testing.T) {
			kubeconfig := writeKubeconfig(t, lane.url, s.Token)
			for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
				// A new process would wait until the lease of the old one has expired.
				// There may be none.
				_ = client.CoordinationV1().Leases("kube-system").Delete(t.Context(), name, metav1.DeleteOptions{})
				startComponent(t, directory, name, kubeconfig)
			}
			times[lane.name] = (&scenario{t, client, "components-" + lane.name}).run()
		})
	}
	for step, relayed := range times["relayed"] {
		direct := times["direct"][step]
		t.Logf("%s: directly %v, relayed %v", step, direct, relayed)
		if limited := step == deletion || step == quickDeletion; limited && relayed > 2*direct+slack {
			t.Errorf("%s takes %v through the relay, directly %v", step, relayed, direct)
		}
	}
}

// startComponent runs a component until the test ends.
func startComponent(t *testing.T, directory, name, kubeconfig string) {
	t.Helper()
	args := []string{"--kubeconfig", kubeconfig, "--bind-address=127.0.0.1", "--secure-port=0", "--authentication-skip-lookup"}
	if name == "kube-controller-manager" {
		args = append(args, "--use-service-account-credentials", "--cluster-signing-cert-file=", "--cluster-signing-key-file=")
	}
	c := exec.Command(filepath.Join(directory, name), args...)
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // the process may have exited
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, log.Bytes()[max(0, log.Len()-4000):])
		}
	})
}

func writeKubeconfig(t *testing.T, url, token string) (path string) {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: url, InsecureSkipTLSVerify: true}
	c.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	c.CurrentContext = "test"
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually calls done repeatedly until it returns true. It returns the time that this took.
func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) time.Duration {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for last := error(nil); ; {
		ok, err := done(ctx)
		if ok {
			return time.Since(begin)
		}
		last = err
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(fmt.Sprint(what, " has not happened: ", last))
		}
	}
}

// stepTimeout limits the time of a step. Only failing tests wait that long.
const stepTimeout = 4 * time.Minute
