//go:build unix

package javascript

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testbuild"
)

// maxAdapterLines is the maximum number of lines of the adapter of TanStack DB.
const maxAdapterLines = 270

func TestTanStackAdapterIsSmall(t *testing.T) {
	files, err := filepath.Glob(clientDir + "/tanstack-db/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("found the files %q, %v", files, err)
	}
	lines := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	if lines > maxAdapterLines {
		t.Errorf("%q have %d lines, want at most %d", files, lines, maxAdapterLines)
	}
}

// The tests use TanStack DB of npm. They start and restart `listwatch serve`.
func TestTanStackAdapterInNode(t *testing.T) {
	installPackages(t)
	tests, err := filepath.Glob(packageDir + "/tanstack/*.test.mjs")
	if err != nil || len(tests) == 0 {
		t.Fatalf("found the tests %q, %v", tests, err)
	}
	program := testbuild.Program(t, "../../cmd/listwatch")
	for _, file := range tests {
		t.Run(filepath.Base(file), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			// The packages of this repository are symbolic links. Their dependencies are next to
			// the links.
			cmd := exec.CommandContext(ctx, nodePath(t), "--preserve-symlinks", "--test-reporter=tap", file)
			cmd.Env = append(os.Environ(), "LISTWATCH="+program)
			// A test that hangs has started servers, so Cancel kills the whole process group.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "# fail 0") {
				t.Errorf("node %s: %v\n%s", file, err, out)
			}
		})
	}
}
