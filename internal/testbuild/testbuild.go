// Package testbuild compiles programs for tests.
package testbuild

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
)

// Flags returns the flags of go build with which the running test was compiled, as far as packages
// are compiled anew without them. With the same flags the build cache has most packages already.
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
	args := append([]string{"build", "-o", program}, Flags()...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", dir, err, out)
	}
	return program
}
