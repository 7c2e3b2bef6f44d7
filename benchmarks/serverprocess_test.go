package benchmarks

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
)

// stormDefinition declares the resource of a storm for listwatch serve.
const stormDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.storm.example.com}
spec:
  group: storm.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.node}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// thingsPath returns the path of the things of a namespace, without the first slash.
func thingsPath(namespace string) string {
	return "apis/storm.example.com/v1/namespaces/" + namespace + "/things"
}

// A serverProcess is a process of listwatch serve that can be killed and started again.
type serverProcess struct {
	*testing.B
	args          []string
	addr, metrics string
	cmd           *exec.Cmd
}

// newServerProcess returns a process that is not started. args choose the store.
func newServerProcess(b *testing.B, dir string, args ...string) *serverProcess {
	b.Helper()
	definition := filepath.Join(dir, "definition.yaml")
	if err := os.WriteFile(definition, []byte(stormDefinition), 0o600); err != nil {
		b.Fatal(err)
	}
	s := &serverProcess{B: b, addr: ports.Address(b), metrics: ports.Address(b)}
	s.args = append([]string{
		"serve", "--addr", s.addr, "--metrics-addr", s.metrics, "--crd", definition,
		"--max-watches", "-1", "--max-watches-per-client", "-1", "--max-requests", "-1", "--max-writes", "-1",
		"--memory", "-1",
	}, args...)
	return s
}

// start returns when the server is ready. On a busy machine, a server over etcd may give up because
// etcd is too slow; then start tries again.
func (s *serverProcess) start() {
	s.Helper()
	for tries := 10; ; tries-- {
		s.cmd = exec.Command(*serverProgram, s.args...)
		_, err := startProcess(s.B, s.cmd, "Metrics on ")
		if err == nil {
			break
		}
		if tries == 0 {
			s.Fatal(err)
		}
	}
	for {
		resp, err := http.Get("http://" + s.metrics + "/readyz")
		if err != nil {
			s.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *serverProcess) kill() {
	s.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	s.cmd.Wait()
}

// cpu returns the processor time that the process has used.
func (s *serverProcess) cpu() time.Duration {
	s.Helper()
	return time.Duration(s.metric("process_cpu_seconds_total") * float64(time.Second))
}

// metric returns the value of a metric that has no labels.
func (s *serverProcess) metric(name string) (value float64) {
	s.Helper()
	resp, err := http.Get("http://" + s.metrics + "/metrics")
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	_, after, _ := bytes.Cut(text, []byte("\n"+name+" "))
	if _, err := fmt.Sscan(string(after), &value); err != nil {
		s.Fatalf("%s: %v", name, err)
	}
	return value
}

// startProcess starts a process that is killed at the end of the benchmark, and returns the rest of
// the first line of its output that contains mark.
func startProcess(b *testing.B, cmd *exec.Cmd, mark string) (rest string, err error) {
	b.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			cmd.Wait()
			return "", fmt.Errorf("%s has ended before it printed %q: %s", cmd, mark, &stderr)
		}
		if _, rest, ok := strings.Cut(line, mark); ok {
			go io.Copy(io.Discard, lines) // until the process ends
			return rest, nil
		}
	}
}
