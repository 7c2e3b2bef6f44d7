// Package testbuild compiles programs for tests.
package testbuild

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
)

// Flags returns the flags of go build that the running test was compiled with and that change the
// compiled packages. With the same flags most packages are already in the build cache.
func Flags() []string {
	var flags []string
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if slices.Contains([]string{"-race", "-trimpath", "-gcflags"}, s.Key) {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}

// Program compiles the main package in the directory dir, and returns the path of the program,
// which is removed at the end of the test.
func Program(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := Compile(program, dir); err != nil {
		t.Fatal(err)
	}
	return program
}

// Compile compiles the main package in the directory dir into the file program. It copies the
// program that go run keeps in the build cache, because go build would link it for each test.
func Compile(program, dir string) error {
	path, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append(append([]string{"run", "-exec=cp"}, Flags()...), ".", path)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go run in %s: %w\n%s", dir, err, out)
	}
	return nil
}
