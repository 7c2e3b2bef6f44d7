//go:build unix

package javascript

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/interop/internal/nodetest"
)

// runtimesDir has the package.json of the programs that run JavaScript. There is a package for each
// processor, and npm installs only the packages for the processor of this machine.
const runtimesDir = "testdata/runtimes"

var everywhere = flag.Bool("runtimes", false, "also run the conformance suite on each version of Node.js, Bun and Deno")

// A jsRuntime is a program that runs the client.
type jsRuntime struct {
	name    string
	program string   // a pattern of its path below node_modules
	test    []string // the arguments that run files of tests
	run     []string // the arguments that run a program
}

var jsRuntimes = []jsRuntime{
	{"node20", "node20-*/bin/node", []string{"--test", "--test-reporter=tap"}, nil},
	{"node22", "node22-*/bin/node", []string{"--test", "--test-reporter=tap"}, nil},
	{"node24", "node24-*/bin/node", []string{"--test", "--test-reporter=tap"}, nil},
	{"bun", "@oven/bun-*/bin/bun", []string{"test"}, nil},
	{"deno", "@deno/*/deno", []string{"test", "-A", "--no-check", "--quiet"}, []string{"run", "-A", "--no-check"}},
}

// path returns the path of the program. Without it the test is skipped, or fails if CI is true.
func (r jsRuntime) path(t *testing.T) string {
	t.Helper()
	nodePath(t)
	err := nodetest.Install(runtimesDir)
	found, _ := filepath.Glob(filepath.Join(runtimesDir, "node_modules", r.program)) // never fails
	if err == nil && len(found) > 0 {
		path, err := filepath.Abs(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing; with CI=true it is required: %v", r.name, err)
	}
	t.Skipf("%s is missing: %v", r.name, err)
	return ""
}

// Each platform has its own implementations of fetch and WebSocket, which fail in different ways.
// In Node.js 22, for example, a WebSocket whose handshake fails is never closed.
func TestUnitTestsPassOnEachRuntime(t *testing.T) {
	tests, err := filepath.Glob(clientDir + "/test/*.test.js")
	if err != nil || len(tests) == 0 {
		t.Fatalf("found the tests %q, %v", tests, err)
	}
	tests = slices.DeleteFunc(tests, func(file string) bool {
		return strings.HasSuffix(file, "cli.test.js") // of another package, which is for Node.js
	})
	for _, r := range jsRuntimes {
		t.Run(r.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), r.path(t), append(slices.Clone(r.test), tests...)...)
			cmd.Env = append(os.Environ(), "NO_COLOR=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", cmd, err, out)
			}
		})
	}
}

func TestClientConformsOnEachRuntime(t *testing.T) {
	if !*everywhere {
		t.Skip("slow; make long-javascript runs it")
	}
	known, err := conformance.ReadKnownFailures("../../js/test/conformance/known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range jsRuntimes {
		if r.name == "bun" || r.name == "deno" {
			continue // their own versions of node:http and TLS differ in what the suite measures
		}
		t.Run(r.name, func(t *testing.T) {
			command := append([]string{r.path(t)}, r.run...)
			checkJavaScriptClient(t, strings.Join(command, " ")+" ../../js/test/conformance/node.js", 58,
				conformance.Options{KnownFailures: known})
		})
	}
}
