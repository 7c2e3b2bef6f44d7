//go:build !race

package suites

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// A target is a package with tests, and how the go command builds it.
type target struct {
	path string
	// directory belongs to the module of the package. If empty, the package is a dependency of this
	// module.
	directory string
	flags     []string // of go test
}

// A spec is a test in a report of ginkgo.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeText, State     string
	Failure                 struct{ Message string }
}

func (s spec) name() string {
	return strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
}

// raced reports whether s has failed because of a race in the spec itself. Such a spec lists from a
// new informer, or waits for it, with a canceled context, and expects an error. If the informer has
// already synced, it returns no error.
func (s spec) raced() bool {
	return (strings.HasSuffix(s.LeafNodeText, "when context is cancelled") ||
		strings.HasSuffix(s.LeafNodeText, "to be cancelled")) &&
		strings.HasPrefix(s.Failure.Message, "Expected an error to have occurred")
}

// test runs the tests of p in a cluster, and returns the output of go test. The error is not nil if
// a test fails.
func (p target) test(t *testing.T, kubeconfig string, args ...string) ([]byte, error) {
	t.Helper()
	all := slices.Concat([]string{"test", "-vet=off", "-count=1"}, ownFlags(), p.flags, []string{p.path}, args)
	cmd := exec.CommandContext(t.Context(), "go", all...)
	cmd.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+kubeconfig)
	if p.directory != "" {
		cmd.Dir = p.directory
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	return cmd.CombinedOutput()
}

// ownFlags returns the flags of the compiler with which these tests were built. With other flags,
// all libraries would be built again.
func ownFlags() (flags []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "-gcflags" {
			flags = append(flags, "-gcflags="+s.Value)
		}
	}
	return flags
}

// runGinkgo runs a suite of ginkgo, and returns its specs that have passed or failed.
func runGinkgo(t *testing.T, p target, kubeconfig string) (specs []spec) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	out, runErr := p.test(t, kubeconfig, "-args", "-ginkgo.json-report="+report)
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v: %v\n%s", runErr, err, out)
	}
	var suites []struct{ SpecReports []spec }
	if err := json.Unmarshal(data, &suites); err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		for _, r := range s.SpecReports {
			if r.State != "pending" && r.State != "skipped" && r.LeafNodeText != "" {
				specs = append(specs, r)
			}
		}
	}
	return specs
}

// runTests runs tests without ginkgo, and returns those that have no subtests and were not skipped.
func runTests(t *testing.T, p target, kubeconfig string) (specs []spec) {
	t.Helper()
	out, err := p.test(t, kubeconfig, "-json")
	output := map[string]string{}
	parents := map[string]bool{}
	for line := range bytes.Lines(out) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil || e.Test == "" {
			continue // not about a test
		}
		output[e.Test] += e.Output
		if i := strings.LastIndexByte(e.Test, '/'); i > 0 {
			parents[e.Test[:i]] = true
		}
		s := spec{LeafNodeText: e.Test, State: e.Action + "ed"}
		s.Failure.Message = output[e.Test]
		if (e.Action == "pass" || e.Action == "fail") && !parents[e.Test] {
			specs = append(specs, s)
		}
	}
	if len(specs) == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	return specs
}
