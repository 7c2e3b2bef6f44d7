package clients

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/testapi"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectlEnv is an environment variable that makes the test binary act as kubectl. A
// separate kubectl binary would take longer to link.
const kubectlEnv = "LISTWATCH_INTEROP_KUBECTL"

func runKubectl() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

// commandTimeout limits a command, so that a test can report which command does not exit. Only
// failing tests wait that long.
const commandTimeout = 5 * time.Minute

// patiently is a flag that makes kubectl wait longer than its default of 30 seconds, which is too
// short on a busy machine.
const patiently = "--timeout=5m"

// A kubectlUser runs kubectl against one server, in its own home directory.
type kubectlUser struct {
	t     *testing.T
	flags []string // the flags that select the server
	dir   string
	// editor is the command that kubectl edit runs to change a file.
	editor string
}

func newKubectlUser(t *testing.T, flags ...string) *kubectlUser {
	t.Helper()
	return &kubectlUser{t: t, flags: flags, dir: t.TempDir()}
}

// startForKubectl starts a server in this process and returns a kubectlUser for it. In addition to
// the default resources, the server has the namespaced resource widgets and the cluster-scoped
// resource gadgets.
func startForKubectl(t *testing.T) (*testapi.Server, *kubectlUser) {
	t.Helper()
	s := testapi.Start(t, "widgets.v1.demo.example.com=Widget", "gadgets.v1.demo.example.com=Gadget,cluster")
	return s, newKubectlUser(t, "--server", s.URL())
}

// file writes a file and returns its name.
func (u *kubectlUser) file(text string) string {
	u.t.Helper()
	f, err := os.CreateTemp(u.dir, "*.yaml")
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return f.Name()
}

func (u *kubectlUser) command(ctx context.Context, args ...string) *exec.Cmd {
	u.t.Helper()
	self, err := os.Executable()
	if err != nil {
		u.t.Fatal(err)
	}
	c := exec.CommandContext(ctx, self, append(append([]string{}, u.flags...), args...)...)
	c.Dir = u.dir
	c.Env = []string{
		kubectlEnv + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + u.dir, "SHELL=/bin/sh", "TMPDIR=" + u.dir,
		"KUBE_EDITOR=" + u.editor,
		// By default the race detector delays the exit by a second.
		"GORACE=atexit_sleep_ms=0",
		"KUBECONFIG=" + filepath.Join(u.dir, "kubeconfig"), // the file need not exist
	}
	return c
}

// try runs kubectl and waits for its exit.
func (u *kubectlUser) try(input string, args ...string) (stdout, stderr string, code int) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), commandTimeout)
	defer cancel()
	c := u.command(ctx, args...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &out, &errs
	err := c.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && (!ended || ctx.Err() != nil) {
		u.t.Fatalf("kubectl %q: %v\n%s%s", args, err, &out, &errs)
	}
	return out.String(), withoutRaceDetectorNote(errs.String()), c.ProcessState.ExitCode()
}

// run runs kubectl, which must succeed, and returns its standard output.
func (u *kubectlUser) run(args ...string) string {
	u.t.Helper()
	return u.runWithInput("", args...)
}

// runWithInput is like run, with a standard input.
func (u *kubectlUser) runWithInput(input string, args ...string) string {
	u.t.Helper()
	out, stderr, code := u.try(input, args...)
	if code != 0 {
		u.t.Fatalf("kubectl %q: exit status %d\n%s%s", args, code, out, stderr)
	}
	return out
}

// wantOutput runs kubectl, which must succeed and print want.
func (u *kubectlUser) wantOutput(want string, args ...string) {
	u.t.Helper()
	if got := u.run(args...); got != want {
		u.t.Errorf("kubectl %q: got\n%swant\n%s", args, got, want)
	}
}

// wantTable runs kubectl, which must print a table with the rows of want. A row holds its fields
// separated by single spaces, with AGE for any age.
func (u *kubectlUser) wantTable(want []string, args ...string) {
	u.t.Helper()
	out := u.run(args...)
	if got, want := strings.Join(tableRows(out), "\n"), strings.Join(want, "\n"); got != want {
		u.t.Errorf("kubectl %q: got\n%swant\n%s", args, out, want)
	}
}

// wantFailure runs kubectl, which must fail with a message that contains want.
func (u *kubectlUser) wantFailure(want string, args ...string) {
	u.t.Helper()
	out, stderr, code := u.try("", args...)
	if code == 0 || !strings.Contains(stderr, want) {
		u.t.Errorf("kubectl %q: got exit status %d\n%s%swant a failure with the message %q", args, code, out,
			stderr, want)
	}
}

// raceDetectorNote matches a line that kubectl prints if it is built with the race detector.
var raceDetectorNote = regexp.MustCompile(`(?m)^I.* Data race detection enabled\n`)

func withoutRaceDetectorNote(text string) string { return raceDetectorNote.ReplaceAllString(text, "") }

var ages = regexp.MustCompile(`^[0-9]+[smh]([0-9]+s)?$`)

// tableRows returns the lines of out with single spaces between the fields and AGE for ages.
func tableRows(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		cells := strings.Fields(line)
		for i, c := range cells {
			if ages.MatchString(c) {
				cells[i] = "AGE"
			}
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return lines
}

// A runningKubectl is a kubectl in the background.
type runningKubectl struct {
	t    *testing.T
	args []string
	kill context.CancelFunc
	done chan struct{} // closed when the process has ended

	mu sync.Mutex
	// Guarded by mu.
	output  string
	changed chan struct{} // closed at the next write
}

// start runs kubectl in the background until the test ends.
func (u *kubectlUser) start(args ...string) *runningKubectl {
	u.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &runningKubectl{t: u.t, args: args, kill: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	c := u.command(ctx, args...)
	c.Stdout, c.Stderr = f, f
	if err := c.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() {
		defer close(f.done)
		_ = c.Wait() // the error of a killed process is expected
	}()
	u.t.Cleanup(f.stop)
	return f
}

func (r *runningKubectl) stop() {
	r.kill()
	<-r.done
}

// Write records the output of the process.
func (r *runningKubectl) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.output += string(p)
	close(r.changed)
	r.changed = make(chan struct{})
	return len(p), nil
}

// waitForLines waits until the process has printed the rows of want. It fails the test if
// the process prints other rows. A row has the same form as in wantTable.
func (r *runningKubectl) waitForLines(want ...string) {
	r.t.Helper()
	late := time.After(commandTimeout)
	for {
		r.mu.Lock()
		text, changed := withoutRaceDetectorNote(r.output), r.changed
		r.mu.Unlock()
		got := tableRows(text)
		if len(got) >= len(want) && strings.HasSuffix(text, "\n") {
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				r.stop()
				r.t.Fatalf("kubectl %q: got\n%swant\n%s", r.args, r.output, strings.Join(want, "\n"))
			}
			return
		}
		select {
		case <-changed:
		case <-r.done:
			r.t.Fatalf("kubectl %q exited; it printed\n%s", r.args, text)
		case <-late:
			r.t.Fatalf("kubectl %q: got\n%swant\n%s", r.args, text, strings.Join(want, "\n"))
		}
	}
}

// waitForExit waits until the process exits and compares its output with want.
func (r *runningKubectl) waitForExit(want string) {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(commandTimeout):
		r.stop()
		r.t.Fatalf("kubectl %q did not exit; it printed\n%s", r.args, r.output)
	}
	if got := withoutRaceDetectorNote(r.output); got != want {
		r.t.Errorf("kubectl %q: got\n%swant\n%s", r.args, got, want)
	}
}
