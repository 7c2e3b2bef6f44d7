package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/nodetest"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// scriptDir holds the scripts and the packages that npm installs.
const scriptDir = "testdata/node"

// scriptTimeout limits the duration of a script. Only failing tests wait that long.
const scriptTimeout = 5 * time.Minute

// installPackages installs the packages of the scripts.
var installPackages = sync.OnceValue(func() error { return nodetest.Install(scriptDir) })

// nodePath returns the Node binary that npm has installed with the client, or the binary in
// the PATH if npm has none for this machine.
func nodePath(t *testing.T) string {
	t.Helper()
	if err := installPackages(); err != nil {
		testapi.SkipMissing(t, "@kubernetes/client-node cannot be installed, which needs npm and the network: %v", err)
	}
	if found, _ := filepath.Glob(scriptDir + "/node_modules/node-*/bin/node"); len(found) > 0 {
		path, err := filepath.Abs(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	path, err := exec.LookPath("node")
	if err != nil {
		testapi.SkipMissing(t, "Node is not installed: %v", err)
	}
	return path
}

// A scriptLine is a line of a script's output.
type scriptLine struct {
	On      string
	Name    string
	Version string
	Code    int
	Reason  string
	Shown   []string          // results that have no field of their own
	More    bool              // the list has more pages
	Objects map[string]string // names and versions
	Clean   bool
	// The following fields are not compared.
	Annotations map[string]string
	Message     string
}

// A runningScript is a running Node process, with its input and output.
type runningScript struct {
	t     *testing.T
	input io.Writer
	lines *json.Decoder
}

// runScript starts a script of testdata/node, which uses the server that c describes. The
// script is killed at the end of the test.
func runScript(t *testing.T, c *rest.Config, name string, args ...string) *runningScript {
	t.Helper()
	node := nodePath(t)
	// This check makes go test's cache depend on the script.
	if _, err := os.Stat(filepath.Join(scriptDir, name)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	cmd := exec.CommandContext(ctx, node, append([]string{name}, args...)...)
	cmd.Dir = scriptDir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+writeKubeconfig(t, c))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // the error of a killed process is expected
		if stderr.Len() > 0 {
			t.Logf("%s printed:\n%s", name, stderr.String())
		}
	})
	return &runningScript{t, input, json.NewDecoder(output)}
}

// writeKubeconfig writes c to a kubeconfig file and returns its path.
func writeKubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	k := api.NewConfig()
	k.Clusters["here"] = &api.Cluster{
		Server: c.Host, CertificateAuthorityData: c.CAData,
		InsecureSkipTLSVerify: c.CAData == nil,
	}
	k.AuthInfos["me"] = &api.AuthInfo{Token: c.BearerToken}
	k.Contexts["test"] = &api.Context{Cluster: "here", AuthInfo: "me"}
	k.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// nextLine returns the next line of the script.
func (s *runningScript) nextLine() scriptLine {
	s.t.Helper()
	var l scriptLine
	if err := s.lines.Decode(&l); err != nil {
		s.t.Fatalf("the script ended, or printed nothing for too long: %v", err)
	}
	return l
}

// wantLines requires the next lines of the script's output to equal the given ones.
func (s *runningScript) wantLines(want ...scriptLine) {
	s.t.Helper()
	for _, w := range want {
		got := s.nextLine()
		got.Annotations, got.Message = nil, ""
		if diff := cmp.Diff(w, got); diff != "" {
			s.t.Fatalf("the line differs (-want +got):\n%s", diff)
		}
	}
}
