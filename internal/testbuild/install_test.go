package testbuild

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// installBlock matches the commands of the section "Install" of the README.
var installBlock = regexp.MustCompile("(?s)\n## Install\n.*?```sh\n(.*?)```")

// The commands of the README must work as printed, in a folder with nothing but a program that
// imports each module. The compiled program names the clone by its absolute path and not by its
// symbolic link, because the build cache has its packages only under that path.
func TestReadmeInstallCommandsWork(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it compiles a program")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := installBlock.FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no commands in its section Install")
	}
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	if err := os.Symlink(clone, filepath.Join(parent, "listwatch")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "flags")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server, err := os.ReadFile("../../examples/server/main.go")
	if err != nil {
		t.Fatal(err)
	}
	modules := publishedModules(t)
	imports := "package main\n\nimport (\n"
	for _, m := range modules {
		imports += "\t_ \"" + m + "\"\n"
	}
	for name, text := range map[string]string{"main.go": string(server), "imports.go": imports + ")\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	run("sh", "-e", "-c", string(block[1]))
	goMod := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(goMod)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("=> ../listwatch"), []byte("=> "+clone))
	if err := os.WriteFile(goMod, text, 0o644); err != nil {
		t.Fatal(err)
	}
	run("go", append(append([]string{"build", "-o", os.DevNull}, Flags()...), ".")...)
}

// publishedModules returns a package of each module in a subfolder that other modules may import,
// according to RELEASE.md.
func publishedModules(t *testing.T) (packages []string) {
	t.Helper()
	text, err := os.ReadFile("../../RELEASE.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `github.com/listwatch/listwatch/(\\S+)` \\|")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		switch dir := m[1]; {
		case strings.HasPrefix(dir, "cmd/"): // a program
		case dir == "observe": // it has no package at its root
			packages = append(packages, "github.com/listwatch/listwatch/observe/metrics")
		default:
			packages = append(packages, "github.com/listwatch/listwatch/"+dir)
		}
	}
	if len(packages) < 5 {
		t.Fatalf("RELEASE.md has the modules %q, want at least 5", packages)
	}
	return packages
}
