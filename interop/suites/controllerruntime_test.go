//go:build !race

package suites

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/kubeapi/kubetest"

	// The tests run the suites of these packages.
	_ "sigs.k8s.io/controller-runtime/pkg/builder"
	_ "sigs.k8s.io/controller-runtime/pkg/cache"
	_ "sigs.k8s.io/controller-runtime/pkg/client"
	_ "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// apiServer is the variable with the path of a kube-apiserver, which make long-suites builds.
const apiServer = "LISTWATCH_KUBE_APISERVER"

// differences holds the specs that fail on kubetest, with the sentence of docs/kubetest.md about
// the reason.
var differences = map[string]string{
	"Client StatusClient with metadata objects should patch status and preserve type information":   statusOnly,
	"Client SubResourceClient with structured objects should be able to approve CSRs":               noRequests,
	"Client SubResourceClient with structured objects should be able to approve CSRs using Patch":   noRequests,
	"Client SubResourceClient with unstructured objects should be able to approve CSRs":             noRequests,
	"Client SubResourceClient with unstructured objects should be able to approve CSRs using Patch": noRequests,
}

const (
	statusOnly = "**A write to the status of a built-in kind changes nothing else.**"
	noRequests = "**There are no CertificateSigningRequests.**"
)

const controllerRuntime = "sigs.k8s.io/controller-runtime/pkg/"

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

// runSuite runs the suite of a package, and returns its specs that have passed or failed. If the
// directory is empty, the package is a dependency of this module. Otherwise it belongs to the
// module in the directory.
func runSuite(t *testing.T, directory, suite, kubeconfig string) (specs []spec) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", suite,
		"-args", "-ginkgo.json-report="+report)
	cmd.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+kubeconfig)
	if directory != "" {
		cmd.Dir = directory
		cmd.Env = append(cmd.Env, "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	}
	out, runErr := cmd.CombinedOutput() // also fails if a spec fails
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

// TestControllerRuntimeSuitesPass runs the suites, which are written for envtest. In envtest, no
// controllers run.
func TestControllerRuntimeSuitesPass(t *testing.T) {
	for suite, want := range map[string]int{"client": 311, "cache": 276, "webhook": 8, "builder": 72} {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			env := kubetest.New(t, kubetest.Options{NoGarbageCollection: true, NoNamespaceDeletion: true})
			specs := runSuite(t, "", controllerRuntime+suite, env.KubeconfigFile())
			for _, s := range specs {
				switch reason, differs := differences[s.name()]; {
				case s.raced():
					t.Logf("%s: the informer was faster than the test", s.name())
				case s.State == "passed" && differs:
					t.Errorf("%s: passes, so it is no longer a difference", s.name())
				case s.State != "passed" && !differs:
					t.Errorf("%s: %s\n%s", s.name(), s.State, s.Failure.Message)
				case differs:
					t.Logf("%s: fails as expected: %s", s.name(), reason)
				}
			}
			if len(specs) != want {
				t.Errorf("%d specs ran, want %d", len(specs), want)
			}
			if path := os.Getenv(apiServer); path != "" {
				compareWithKubernetes(t, suite, path, len(specs))
			}
		})
	}
}

// compareWithKubernetes runs the suite on the kube-apiserver at path, where all specs must pass.
func compareWithKubernetes(t *testing.T, suite, path string, want int) {
	t.Helper()
	specs := runSuite(t, "", controllerRuntime+suite, kubeapiserver.Start(t, path))
	for _, s := range specs {
		if s.State != "passed" && !s.raced() {
			t.Errorf("kube-apiserver: %s: %s\n%s", s.name(), s.State, s.Failure.Message)
		}
	}
	if len(specs) != want {
		t.Errorf("%d specs ran on kube-apiserver, want %d", len(specs), want)
	}
}

var documentedBlock = regexp.MustCompile("(?s)<!-- (kubeapi/\\S+) -->\n```go\n(.*?)```")

func TestDocsShowTheTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubetest.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := documentedBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Error("docs/kubetest.md shows no code")
	}
	for _, b := range blocks {
		text, err := os.ReadFile(filepath.Join("../..", b[1]))
		if err != nil || !strings.Contains(string(text), b[2]) {
			t.Errorf("%s does not contain the code on the page, %v:\n%s", b[1], err, b[2])
		}
	}
}

func TestDifferencesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubetest.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for name, quote := range differences {
		if !strings.Contains(text, quote) {
			t.Errorf("%s: docs/kubetest.md does not contain %q", name, quote)
		}
	}
}
