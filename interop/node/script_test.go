package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// patience is how long a script may take.
const patience = time.Minute

// installed lets npm install what is locked, unless it is there from another run.
var installed = sync.OnceValue(func() error {
	locked, err := os.ReadFile("testdata/package-lock.json")
	if err != nil {
		return err
	}
	const mark = "testdata/node_modules/.installed" // what is there, as it was locked
	if there, err := os.ReadFile(mark); err == nil && bytes.Equal(there, locked) {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = "testdata"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return os.WriteFile(mark, locked, 0o644)
})

// nodePath returns the Node that npm has installed with the client; where it has none for this machine, the one that is here.
func nodePath(t *testing.T) string {
	t.Helper()
	if err := installed(); err != nil {
		kubetest.Lacking(t, "@kubernetes/client-node can't be installed, which takes npm and the network: %v", err)
	}
	if found, _ := filepath.Glob("testdata/node_modules/node-*/bin/node"); len(found) > 0 {
		path, err := filepath.Abs(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	path, err := exec.LookPath("node")
	if err != nil {
		kubetest.Lacking(t, "Node is not here: %v", err)
	}
	return path
}

// A line is what a script tells.
type line struct {
	On      string
	Name    string
	Version string
	Code    int
	Reason  string
	Shown   []string          // what else a step shows
	More    bool              // there are more pages
	Objects map[string]string // names and versions
	Clean   bool
	// Not compared.
	Annotations map[string]string
	Message     string
}

// A script is one that runs.
type script struct {
	t     *testing.T
	input io.Writer
	lines *json.Decoder
}

// run starts a script of testdata as a client of the server that c is for. It ends with the test.
func run(t *testing.T, c *rest.Config, name string, args ...string) *script {
	t.Helper()
	node := nodePath(t)
	if _, err := os.Stat(filepath.Join("testdata", name)); err != nil { // and the test's cached result depends on it
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	cmd := exec.CommandContext(ctx, node, append([]string{name}, args...)...)
	cmd.Dir = "testdata"
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig(t, c))
	var said bytes.Buffer
	cmd.Stderr = &said
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
		_ = cmd.Wait() // it has been killed, or has ended by itself
		if said.Len() > 0 {
			t.Logf("%s said:\n%s", name, said.String())
		}
	})
	return &script{t, input, json.NewDecoder(output)}
}

// kubeconfig writes c to a file as kubectl and its like read it.
func kubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	k := api.NewConfig()
	k.Clusters["here"] = &api.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData, InsecureSkipTLSVerify: c.CAData == nil}
	k.AuthInfos["me"] = &api.AuthInfo{Token: c.BearerToken}
	k.Contexts["test"] = &api.Context{Cluster: "here", AuthInfo: "me"}
	k.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// next returns what the script tells next.
func (s *script) next() line {
	s.t.Helper()
	var l line
	if err := s.lines.Decode(&l); err != nil {
		s.t.Fatalf("the script ends, or says nothing for too long: %v", err)
	}
	return l
}

// wants compares what the script tells next.
func (s *script) wants(want ...line) {
	s.t.Helper()
	for _, w := range want {
		got := s.next()
		got.Annotations, got.Message = nil, ""
		if diff := cmp.Diff(w, got); diff != "" {
			s.t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}
