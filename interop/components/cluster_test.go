//go:build !race

package components

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// programs is the environment variable with the directory of Kubernetes' programs.
const programs = "LISTWATCH_KUBERNETES"

// A cluster is a kube-apiserver with nodes, and a relay of it that has the default flags.
type cluster struct {
	directory string // of Kubernetes' programs
	token     string // of the administrator
	authority string // the path of the certificate that signs the clients' certificates
	client    kubernetes.Interface
	lanes     []lane // the kube-apiserver, and then the relay
}

// A lane is an API server for components.
type lane struct{ name, url string }

// startCluster runs a cluster until the test ends. It skips the test if the programs are not built.
// startEtcd returns the URL of an etcd.
func startCluster(t *testing.T, startEtcd func(testing.TB) string) *cluster {
	t.Helper()
	directory := os.Getenv(programs)
	if directory == "" {
		t.Skip(programs + " names no directory; use the targets long-components and long-e2e")
	}
	authority := newAuthority(t)
	s := kubeapiserver.StartWith(t, filepath.Join(directory, "kube-apiserver"),
		kubeapiserver.Options{Etcd: startEtcd(t), Args: []string{
			"--client-ca-file=" + authority, "--requestheader-client-ca-file=" + authority,
			"--requestheader-allowed-names=proxy",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		}})
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
	relay := program.Start(t, program.Build(t), "relay", "--cluster", "--kubeconfig", s.Kubeconfig,
		"--addr", "", "--tls-addr", "127.0.0.1:0", "--tls-self-signed")
	return &cluster{directory, s.Token, authority, client, []lane{{"direct", s.URL}, {"relayed", relay.URL()}}}
}

// startComponents runs kube-controller-manager and kube-scheduler until the test ends, with the
// given API server. It returns the path of their kubeconfig file.
func (c *cluster) startComponents(t *testing.T, url string) (kubeconfig string) {
	t.Helper()
	kubeconfig = writeKubeconfig(t, url, c.token)
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		// A new process would wait until the lease of the old one has expired. There may be none.
		_ = c.client.CoordinationV1().Leases("kube-system").Delete(t.Context(), name, metav1.DeleteOptions{})
		c.startComponent(t, name, kubeconfig)
	}
	return kubeconfig
}

// startComponent runs a component until the test ends.
func (c *cluster) startComponent(t *testing.T, name, kubeconfig string) {
	t.Helper()
	args := []string{
		"--kubeconfig", kubeconfig, "--bind-address=127.0.0.1", "--secure-port=0",
		"--authentication-skip-lookup",
	}
	if name == "kube-controller-manager" {
		// One of Kubernetes' specs waits for the next sync of the quotas. The default period is
		// five minutes.
		args = append(args, "--use-service-account-credentials", "--cluster-signing-cert-file=",
			"--cluster-signing-key-file=",
			"--root-ca-file="+c.authority, "--resource-quota-sync-period=10s")
	}
	startProgram(t, filepath.Join(c.directory, name), args...)
}

// startProgram runs a program until the test ends, and logs its CPU time. A program at the relay
// stops before the same program that started earlier at the kube-apiserver.
func startProgram(t *testing.T, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the process may have exited
		_ = cmd.Wait()
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		t.Logf("%s: %v of CPU time in %v", filepath.Base(path), used.Round(10*time.Millisecond),
			time.Since(begin).Round(time.Second))
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", filepath.Base(path), log.Bytes()[max(0, log.Len()-4000):])
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

// newAuthority returns the path of the certificate of a new certificate authority.
func newAuthority(t *testing.T) (path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
