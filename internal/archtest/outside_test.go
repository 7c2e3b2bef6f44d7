package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testbuild"
)

// These are the files of a module outside this repository. Its program serves a collection from
// memory.
const (
	outsideModule = `module example.com/outside

go 1.26.0

require github.com/listwatch/listwatch v0.0.0

replace github.com/listwatch/listwatch => `
	outsideMain = `package main

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

type flag struct {
	listwatch.Metadata ` + "`json:\"metadata\"`" + `
}

func main() {
	http.Handle("/flags", &watchserver.Server{Source: memory.New[flag]()})
}
`
)

// unwanted modules must not be in the module graph of a user of watchserver and store/memory.
var unwanted = []string{
	"go.etcd.io/etcd", "google.golang.org/grpc", "go.uber.org/zap", "github.com/spf13/cobra", "github.com/spf13/pflag",
	"k8s.io", "sigs.k8s.io",
}

func TestServerFromMemoryNeedsFewModules(t *testing.T) {
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  outsideModule + repository + "\n",
		"go.sum":  string(sums),
		"main.go": outsideMain,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	runGo(t, dir, append([]string{"build", "-o", os.DevNull}, testbuild.Flags()...)...)
	modules := strings.Fields(runGo(t, dir, "list", "-m", "-f", "{{.Path}}", "all"))
	t.Logf("%d modules: %s", len(modules), strings.Join(modules, " "))
	found := false
	for _, m := range modules {
		found = found || m == modulePath
		if hasAnyPrefix(m, unwanted) {
			t.Errorf("the module graph contains %s", m)
		}
	}
	if !found {
		t.Errorf("the module graph does not contain %s: %q", modulePath, modules)
	}
}

// runGo runs the go command in dir and returns its output. It works without a network if the module
// cache already holds what the command needs.
func runGo(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := goCommand(t, dir, args, "GOPROXY=off").Output()
	if err != nil {
		t.Logf("go %s without a proxy: %v; trying with one", strings.Join(args, " "), err)
		cmd := goCommand(t, dir, args)
		cmd.Stderr = os.Stderr
		if out, err = cmd.Output(); err != nil {
			t.Fatalf("go %s: %v", strings.Join(args, " "), err)
		}
	}
	return string(out)
}

func goCommand(t *testing.T, dir string, args []string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod"), env...)
	return cmd
}
