package conformancecmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testbuild"
)

// printedCommand matches the command that conformance init prints.
var printedCommand = regexp.MustCompile(`(?m)^  listwatch (conformance .*)$`)

// Each skeleton must work without changes: the skeleton for a server with a server that has its
// URLs, and the skeleton for a client with the client of the language.
func TestSkeletonsRun(t *testing.T) {
	program := listwatchProgram(t)
	server := testbuild.Program(t, "./testdata/things")
	for _, test := range []struct{ subject, language, interpreter, run string }{
		{"server", "go", "go", "event resume/from-rv resume/server-restart"},
		{"server", "javascript", "node", "event resume/from-rv resume/server-restart"},
		{"server", "python", "python3", "event resume/from-rv resume/server-restart"},
		{"client", "go", "go", "event framing/json-stream-decoder framing/clean-end-vs-abort"},
		{"client", "javascript", "node", "event framing/json-stream-decoder framing/clean-end-vs-abort"},
		{"client", "python", "python3", "event framing/json-stream-decoder framing/clean-end-vs-abort"},
	} {
		t.Run(test.subject+"/"+test.language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(test.interpreter); err != nil {
				t.Skip(test.interpreter + " is not installed")
			}
			dir := t.TempDir()
			out, err := exec.CommandContext(t.Context(), program, "conformance", "init", test.subject, test.language,
				dir).
				CombinedOutput()
			command := printedCommand.FindSubmatch(out)
			if err != nil || command == nil {
				t.Fatalf("init: %v\n%s", err, out)
			}
			line := program + " " + string(command[1]) + " --timeout 1m"
			for pattern := range strings.FieldsSeq(test.run) {
				line += " --run " + pattern
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
			cmd.Env = append(environment(), "SERVER_COMMAND="+server+" {port}")
			out, err = cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "\nskip  resume/server-restart") {
				t.Errorf("%s: %v\n%s", line, err, lastLines(string(out), 60))
			}
		})
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	program := listwatchProgram(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "adapter.py")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "conformance", "init", "server", "python",
		dir).CombinedOutput()
	if data, readErr := os.ReadFile(file); err == nil || readErr != nil || string(data) != "mine" {
		t.Errorf("got %v %v and the file %q, want an error and the file as it was\n%s", err, readErr, data, out)
	}
}
