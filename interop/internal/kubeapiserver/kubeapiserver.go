//go:build !race

// Package kubeapiserver runs a kube-apiserver for tests. The tests do not build this program.
package kubeapiserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	token        = "the-token-of-a-test"
	startTimeout = 5 * time.Minute // the time until the server is ready
)

// A Server is a running kube-apiserver.
type Server struct {
	URL        string
	Token      string // of the administrator
	Kubeconfig string // the path of a kubeconfig file for the administrator
	PID        int

	program string
	args    []string
	log     *os.File
	command *exec.Cmd // nil if the server is stopped
}

// Options configure StartWith. The zero value is ready to use.
type Options struct {
	// Etcd is the URL of an etcd for the server's data. If empty, the server has one of its own.
	Etcd string
	// Users are further lines of the file with the tokens: token,user,uid,"group1,group2".
	Users []string
	// Args are further arguments of the program. They override its other arguments.
	Args []string
}

// Start is like StartWith without options. It returns the path of the kubeconfig file.
func Start(t testing.TB, path string) (kubeconfig string) {
	t.Helper()
	return StartWith(t, path, Options{}).Kubeconfig
}

// StartWith starts the kube-apiserver at path. The server is stopped at the end of the test. As in
// envtest, no controllers run.
func StartWith(t testing.TB, path string, o Options) *Server {
	t.Helper()
	if o.Etcd == "" {
		o.Etcd = etcdtest.Start(t, nil).URL
	}
	dir, address := t.TempDir(), ports.Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		URL: "https://" + address, Token: token, Kubeconfig: filepath.Join(dir, "kubeconfig"), program: path,
	}
	key, tokens := filepath.Join(dir, "key.pem"), filepath.Join(dir, "tokens.csv")
	write(t, key, newKey(t))
	write(t, tokens, []byte(strings.Join(append(o.Users, token+",admin,admin,system:masters"), "\n")+"\n"))
	s.args = append([]string{
		"--etcd-servers=" + o.Etcd, "--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + dir,
		// The address of the service kubernetes, which must not be a loopback address.
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://127.0.0.1/",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key, "--allow-privileged=true",
	}, o.Args...)
	if s.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		_ = s.log.Close()
	})
	awaitReady(t, &rest.Config{
		Host: "https://" + address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}, s.log.Name())
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: "https://" + address, InsecureSkipTLSVerify: true}
	c.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: "default"}
	c.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*c, s.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s
}

// Stop kills the server.
func (s *Server) Stop() {
	if s.command != nil {
		_ = s.command.Process.Kill() // it may have exited
		_ = s.command.Wait()
		s.command = nil
	}
}

// Restart starts the server after Stop. It does not wait until the server is ready.
func (s *Server) Restart() error {
	s.command = exec.Command(s.program, s.args...)
	s.command.Stdout, s.command.Stderr = s.log, s.log
	if err := s.command.Start(); err != nil {
		s.command = nil
		return err
	}
	s.PID = s.command.Process.Pid
	return nil
}

// awaitReady waits until the server reports that it is ready.
func awaitReady(t testing.TB, c *rest.Config, log string) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	var last error
	ready := func(ctx context.Context) (bool, error) {
		last = clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return last == nil, nil
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, startTimeout, true, ready)
	if err != nil {
		text, _ := os.ReadFile(log)
		t.Fatalf("kube-apiserver is not ready: %v: %v\n%s", err, last, text)
	}
}

func newKey(t testing.TB) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
