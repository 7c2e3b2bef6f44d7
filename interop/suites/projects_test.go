//go:build !race

package suites

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
)

// A project is a module with tests that are written for envtest. None of its code is in this
// repository: the go command builds its packages in the module cache, with the libraries of this
// module, so that these are built only once.
type project struct {
	module string
	// edits are options of go mod edit, without which the module cannot be built.
	edits []string
	// ports change the Go files. If there are any, the go command builds a copy of the module.
	ports  []replacement
	suites []suite
}

// A replacement replaces the text that matches a regular expression.
type replacement struct{ pattern, text string }

// olderBuilder ports the registration of webhooks from controller-runtime 0.22 and before.
var olderBuilder = replacement{
	`NewWebhookManagedBy\(mgr\)\.\s+For\((.*)\)\.\s+With(Validator|Defaulter)`,
	"NewWebhookManagedBy(mgr, $1).WithCustom$2",
}

// A suite is a package whose tests must pass on kubetest.
type suite struct {
	path  string
	tests int
	// run is runGinkgo or runTests.
	run func(t *testing.T, p target, kubeconfig string) []spec
	// always is true if the suite is fast enough for each run of the tests. The others run only in
	// make long-suites.
	always  bool
	options kubetest.Options
}

var projects = []project{
	{
		module: "sigs.k8s.io/cluster-api@v1.14.2",
		edits:  []string{"-dropreplace=sigs.k8s.io/cluster-api/api", "-require=sigs.k8s.io/cluster-api/api@v1.14.2"},
		suites: []suite{
			{path: "controllers/crdmigrator", tests: 9, run: runTests, always: true},
			{path: "core/webhooks/admission/test", tests: 40, run: runTests},
			// Objects have owners that do not exist.
			{path: "util/patch/test", tests: 51, run: runTests, options: kubetest.Options{NoGarbageCollection: true}},
			{path: "internal/util/ssa/test", tests: 20, run: runTests, options: kubetest.Options{ManagedFields: true}},
		},
	},
	{
		module: "github.com/kedacore/keda/v2@v2.21.0",
		suites: []suite{{path: "apis/keda/v1alpha1", tests: 92, run: runGinkgo}},
	},
	{
		module: "sigs.k8s.io/karpenter@v1.12.1",
		// A type of its tests lacks a newer method of an interface, which it does not need.
		ports: []replacement{{
			`type cacheSyncingStatusWriter struct \{`, "type cacheSyncingStatusWriter struct {\n\tclient.SubResourceWriter",
		}},
		suites: []suite{{path: "pkg/apis/v1", tests: 167, run: runGinkgo}},
	},
	{
		module: "github.com/kubeflow/trainer/v2@v2.0.0",
		// Its Makefile copies the definitions of other projects, which the webhooks do not need.
		ports:  []replacement{olderBuilder, {`(?m)^.*"external-crds".*\n`, ""}},
		suites: []suite{{path: "test/integration/webhooks", tests: 31, run: runGinkgo}},
	},
	{
		module: "github.com/ray-project/kuberay/ray-operator@v1.5.0",
		ports:  []replacement{olderBuilder},
		suites: []suite{{path: "pkg/webhooks/v1", tests: 7, run: runGinkgo}},
	},
}

// TestProjectsPass runs the suites of the projects.
func TestProjectsPass(t *testing.T) {
	for _, p := range projects {
		t.Run(p.module, func(t *testing.T) {
			suites := p.suites
			if os.Getenv(apiServer) == "" {
				suites = slices.DeleteFunc(slices.Clone(suites), func(s suite) bool { return !s.always })
			}
			if len(suites) == 0 {
				t.Skipf("%s is not set", apiServer)
			}
			built := p.prepare(t)
			for _, s := range suites {
				t.Run(s.path, func(t *testing.T) {
					built.path = "./" + s.path
					specs := s.run(t, built, kubetest.New(t, s.options).KubeconfigFile())
					check(t, specs, nil, s.tests)
				})
			}
		})
	}
}

// check reports the specs that have failed, except for the given differences, and those that have
// passed in spite of a difference.
func check(t *testing.T, specs []spec, differences map[string]string, want int) {
	t.Helper()
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
}

// prepare downloads the module of p, and returns a target without a package.
func (p project) prepare(t *testing.T) target {
	t.Helper()
	directory, own := testapi.DownloadModule(t, p.module), t.TempDir()
	if p.ports != nil {
		copied := filepath.Join(own, "module")
		copyModule(t, copied, directory, p.ports)
		directory = copied
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(directory, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(own, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const used = "{{with .Module}}{{if and .Version (not .Replace)}}-replace={{.Path}}={{.Path}}@{{.Version}}{{end}}{{end}}"
	libraries := strings.Fields(command(t, "list", "-deps", "-test", "-f", used, "."))
	slices.Sort(libraries)
	modfile := filepath.Join(own, "go.mod")
	edit := slices.Concat([]string{"mod", "edit", "-go=1.26.0", "-toolchain=none"}, p.edits, slices.Compact(libraries))
	command(t, append(edit, modfile)...)
	return target{directory: directory, flags: []string{"-mod=mod", "-modfile=" + modfile}}
}

// command runs a program of the go command, and returns its output.
func command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// copyModule copies a module, and changes its Go files.
func copyModule(t *testing.T, to, from string, ports []replacement) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = filepath.WalkDir(to, func(file string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".go" {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			changed := text
			for _, p := range ports {
				changed = regexp.MustCompile(p.pattern).ReplaceAll(changed, []byte(p.text))
			}
			if bytes.Equal(changed, text) {
				return nil
			}
			return os.WriteFile(file, changed, 0o600)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}
