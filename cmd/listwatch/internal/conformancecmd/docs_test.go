package conformancecmd_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/testbuild"
)

// execCommand matches a command of docs/conformance.md that needs nothing but its adapter. Package
// interop/javascript tests the adapter of the JavaScript client.
var execCommand = regexp.MustCompile(
	`(?m)^    \./listwatch (conformance (?:client|server) --exec '(\w+) .*(?:conformance/testdata|skeleton)/.*)$`)

// countedCases matches the number of cases that a command has run.
var countedCases = regexp.MustCompile(`runs of (\d+) cases`)

var allCases = flag.Bool("all", false, "run all cases, and not only some groups")

// Each command of the page must exit with 0, as the page says, even if a violated SHOULD counts as
// a failure.
func TestCommandsOfTheDocsSucceed(t *testing.T) {
	program := listwatchProgram(t)
	if testing.Short() {
		t.Skip("slow: the commands run much of the suite")
	}
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := execCommand.FindAllStringSubmatch(string(page), -1)
	if len(commands) < 4 {
		t.Fatalf("docs/conformance.md has the commands %q, want at least 4", commands)
	}
	for _, command := range commands {
		t.Run(command[2], func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(command[2]); err != nil {
				t.Skip(command[2] + " is not installed")
			}
			line, want := program+" "+command[1]+" --timeout 1m --strict", 30
			if !*allCases {
				line, want = line+" --run event --run framing --run error/client-typed", 15
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
			cmd.Dir, cmd.Env = root, environment()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", command[1], err, lastLines(string(out), 60))
			}
			m := countedCases.FindSubmatch(out)
			if m == nil {
				t.Fatalf("%s printed no number of cases:\n%s", command[1], lastLines(string(out), 5))
			}
			if n, _ := strconv.Atoi(string(m[1])); n < want {
				t.Errorf("%s ran %d cases, want at least %d", command[1], n, want)
			}
		})
	}
}

// listwatchProgram compiles listwatch and returns its path. The calling test runs in parallel with
// others, because the program spends most of its time waiting. It is skipped with the race
// detector: the command has no goroutines of its own, and package cases runs the cases with it.
func listwatchProgram(t *testing.T) string {
	t.Helper()
	if racetest.Enabled {
		t.Skip("make test runs the program without the race detector")
	}
	program := testbuild.Program(t, "../..")
	t.Parallel()
	return program
}

// environment returns the environment of a command that may run a program with go run. The program
// is compiled with the flags of this test, with which its packages are in the build cache.
func environment() []string {
	flags := append(strings.Fields(os.Getenv("GOFLAGS")), testbuild.Flags()...)
	return append(os.Environ(), "GOFLAGS="+strings.Join(flags, " "))
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
