//go:build !race

package suites

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
)

// projects are suites with webhooks, which are written for envtest. None of their code is in this
// repository, and all of their specs must pass on kubetest.
var projects = []struct {
	module, suite string
	specs         int
	// source and replacement, if not empty, port the package to the controller-runtime of this
	// module.
	source, replacement string
}{
	{module: "github.com/kedacore/keda/v2@v2.21.0", suite: "apis/keda/v1alpha1", specs: 92},
	{
		module: "github.com/ray-project/kuberay/ray-operator@v1.5.0", suite: "pkg/webhooks/v1", specs: 7,
		source:      `NewWebhookManagedBy\(mgr\)\.\s+For\((.*)\)\.\s+WithValidator`,
		replacement: "NewWebhookManagedBy(mgr, $1).WithCustomValidator",
	},
}

// libraries are the modules of which the projects use the same version as this module, so that they
// are built only once.
var libraries = []string{
	"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/apiserver", "k8s.io/client-go",
	"k8s.io/component-base", "sigs.k8s.io/controller-runtime", "github.com/onsi/ginkgo/v2", "github.com/onsi/gomega",
}

// command runs a program of the go command, and returns its output.
func command(t *testing.T, directory string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = directory
	if directory != "" {
		c.Env = append(os.Environ(), "GOWORK=off")
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestProjectsPass runs the suites of the projects. It is for make long-suites, because it builds
// the projects.
func TestProjectsPass(t *testing.T) {
	if os.Getenv(apiServer) == "" {
		t.Skipf("%s is not set", apiServer)
	}
	edit := []string{"mod", "edit", "-go=1.26.0"}
	for line := range strings.Lines(command(t, "", append([]string{"list", "-m"}, libraries...)...)) {
		edit = append(edit, "-require="+strings.Join(strings.Fields(line), "@"))
	}
	for _, p := range projects {
		t.Run(p.module, func(t *testing.T) {
			directory := t.TempDir()
			if err := os.CopyFS(directory, os.DirFS(testapi.DownloadModule(t, p.module))); err != nil {
				t.Fatal(err)
			}
			command(t, directory, edit...)
			if p.source != "" {
				port(t, filepath.Join(directory, p.suite), regexp.MustCompile(p.source), p.replacement)
			}
			env := kubetest.New(t, kubetest.Options{})
			specs := runSuite(t, directory, "./"+p.suite, env.KubeconfigFile())
			for _, s := range specs {
				if s.State != "passed" {
					t.Errorf("%s: %s\n%s", s.name(), s.State, s.Failure.Message)
				}
			}
			if len(specs) != p.specs {
				t.Errorf("%d specs ran, want %d", len(specs), p.specs)
			}
		})
	}
}

// port replaces text in the Go files of a directory.
func port(t *testing.T, directory string, source *regexp.Regexp, replacement string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, source.ReplaceAll(text, []byte(replacement)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
