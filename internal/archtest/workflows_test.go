package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// actionlint also checks that the workflows use action.yml as it is declared.
func TestWorkflowsAreValid(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds actionlint")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join(root, "tools", "go.mod"),
		"actionlint")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
}

func TestActionPassesItsInputsOn(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, script, ok := strings.Cut(string(data), "      run: |\n")
	if !ok {
		t.Fatal("action.yml has no script")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "npx"), []byte("#!/bin/sh\nprintf '%s|' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "VERSION=1.2.3", "SUBJECT=server", "FLAG_url=",
		"FLAG_exec=node 'my adapter.mjs'", "FLAG_level=2", "FLAG_known_failures=known.txt", "FLAG_junit=a b.xml")
	out, err := cmd.CombinedOutput()
	want := "--yes|listwatch-cli@1.2.3|conformance|server|--exec|node 'my adapter.mjs'|--level|2|" +
		"--known-failures|known.txt|--junit|a b.xml|"
	if err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}
