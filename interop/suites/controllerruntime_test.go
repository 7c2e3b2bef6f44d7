//go:build !race

package suites

import (
	"os"
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

// TestControllerRuntimeSuitesPass runs the suites, which are written for envtest. In envtest, no
// controllers run.
func TestControllerRuntimeSuitesPass(t *testing.T) {
	for suite, want := range map[string]int{"client": 311, "cache": 276, "webhook": 8, "builder": 72} {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			env := kubetest.New(t, kubetest.Options{NoGarbageCollection: true, NoNamespaceDeletion: true})
			specs := runGinkgo(t, target{path: controllerRuntime + suite}, env.KubeconfigFile())
			check(t, specs, differences, want)
			if path := os.Getenv(apiServer); path != "" {
				compareWithKubernetes(t, suite, path, len(specs))
			}
		})
	}
}

// compareWithKubernetes runs the suite on the kube-apiserver at path, where all specs must pass.
func compareWithKubernetes(t *testing.T, suite, path string, want int) {
	t.Helper()
	specs := runGinkgo(t, target{path: controllerRuntime + suite}, kubeapiserver.Start(t, path))
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
