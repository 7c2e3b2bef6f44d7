package kubectl

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

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// asKubectl is set in the environment of processes that are to be kubectl: this binary has it within, so that it need not be linked twice.
const asKubectl = "LISTWATCH_INTEROP_KUBECTL"

func TestMain(m *testing.M) {
	if os.Getenv(asKubectl) == "" {
		os.Exit(m.Run())
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

// patience is when a test gives up on a command, to say on which.
const patience = time.Minute

// A user runs kubectl against one server, with a home and a directory of their own.
type user struct {
	t     *testing.T
	flags []string // say which server
	dir   string
	// editor is the command that kubectl edit runs on a file.
	editor string
}

func newUser(t *testing.T, flags ...string) *user {
	t.Helper()
	return &user{t: t, flags: flags, dir: t.TempDir()}
}

// start returns a user of a server in this process, which serves widgets, that have namespaces, and gadgets, that have none.
func start(t *testing.T) (*kubetest.Server, *user) {
	t.Helper()
	s := kubetest.Start(t, "widgets.v1.demo.example.com=Widget", "gadgets.v1.demo.example.com=Gadget,cluster")
	return s, newUser(t, "--server", s.URL())
}

// file writes a file for kubectl to read and returns its name.
func (u *user) file(text string) string {
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

func (u *user) command(ctx context.Context, args ...string) *exec.Cmd {
	u.t.Helper()
	self, err := os.Executable()
	if err != nil {
		u.t.Fatal(err)
	}
	c := exec.CommandContext(ctx, self, append(append([]string{}, u.flags...), args...)...)
	c.Dir = u.dir
	c.Env = []string{
		asKubectl + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + u.dir, "SHELL=/bin/sh", "TMPDIR=" + u.dir,
		"KUBE_EDITOR=" + u.editor,
		"GORACE=atexit_sleep_ms=0",                         // or every kubectl lasts a second longer under the race detector
		"KUBECONFIG=" + filepath.Join(u.dir, "kubeconfig"), // there may be none
	}
	return c
}

// try runs kubectl to its end.
func (u *user) try(input string, args ...string) (out, says string, code int) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	c := u.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &stdout, &stderr
	err := c.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && (!ended || ctx.Err() != nil) {
		u.t.Fatalf("kubectl %q: %v\n%s%s", args, err, &stdout, &stderr)
	}
	return stdout.String(), plain(stderr.String()), c.ProcessState.ExitCode()
}

// run runs kubectl, which must succeed, and returns what it prints.
func (u *user) run(args ...string) string {
	u.t.Helper()
	return u.feed("", args...)
}

// feed is run with something to read.
func (u *user) feed(input string, args ...string) string {
	u.t.Helper()
	out, says, code := u.try(input, args...)
	if code != 0 {
		u.t.Fatalf("kubectl %q: exit status %d\n%s%s", args, code, out, says)
	}
	return out
}

// prints runs kubectl, which must succeed and print just that.
func (u *user) prints(want string, args ...string) {
	u.t.Helper()
	if got := u.run(args...); got != want {
		u.t.Errorf("kubectl %q: got\n%swant\n%s", args, got, want)
	}
}

// rows runs kubectl, which must print a table with such fields; AGE stands for any age. Widths don't count.
func (u *user) rows(want []string, args ...string) {
	u.t.Helper()
	out := u.run(args...)
	if got, want := strings.Join(fields(out), "\n"), strings.Join(want, "\n"); got != want {
		u.t.Errorf("kubectl %q: got\n%swant\n%s", args, out, want)
	}
}

// refused runs kubectl, which must fail and say so.
func (u *user) refused(want string, args ...string) {
	u.t.Helper()
	out, says, code := u.try("", args...)
	if code == 0 || !strings.Contains(says, want) {
		u.t.Errorf("kubectl %q: got exit status %d\n%s%swant a failure that says %q", args, code, out, says, want)
	}
}

// raceNote is what kubectl says of itself when it is built with the race detector.
var raceNote = regexp.MustCompile(`(?m)^I.* Data race detection enabled\n`)

func plain(text string) string { return raceNote.ReplaceAllString(text, "") }

var ages = regexp.MustCompile(`^[0-9]+[smh]([0-9]+s)?$`)

// fields returns the lines of out, each with one space between its fields and AGE for ages.
func fields(out string) []string {
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

// A follower is a kubectl that goes on until it is stopped.
type follower struct {
	t    *testing.T
	args []string
	end  context.CancelFunc
	done chan struct{} // closed when the process has ended

	mu sync.Mutex
	// Guarded by mu.
	text    string
	changed chan struct{} // closed at the next write
}

// follow starts kubectl; the test's end stops it.
func (u *user) follow(args ...string) *follower {
	u.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{t: u.t, args: args, end: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	c := u.command(ctx, args...)
	c.Stdout, c.Stderr = f, f
	if err := c.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() {
		defer close(f.done)
		_ = c.Wait() // it is killed
	}()
	u.t.Cleanup(f.stop)
	return f
}

func (f *follower) stop() {
	f.end()
	<-f.done
}

// Write takes what the process prints.
func (f *follower) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text += string(p)
	close(f.changed)
	f.changed = make(chan struct{})
	return len(p), nil
}

// shows waits until all that the process has printed are lines with such fields.
func (f *follower) shows(want ...string) {
	f.t.Helper()
	late := time.After(patience)
	for {
		f.mu.Lock()
		text, changed := plain(f.text), f.changed
		f.mu.Unlock()
		got := fields(text)
		if len(got) >= len(want) && strings.HasSuffix(text, "\n") {
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				f.stop()
				f.t.Fatalf("kubectl %q: got\n%swant\n%s", f.args, f.text, strings.Join(want, "\n"))
			}
			return
		}
		select {
		case <-changed:
		case <-f.done:
			f.t.Fatalf("kubectl %q ended; it printed\n%s", f.args, text)
		case <-late:
			f.t.Fatalf("kubectl %q: got\n%swant\n%s", f.args, text, strings.Join(want, "\n"))
		}
	}
}

// ends waits until the process has ended by itself, having printed want.
func (f *follower) ends(want string) {
	f.t.Helper()
	select {
	case <-f.done:
	case <-time.After(patience):
		f.stop()
		f.t.Fatalf("kubectl %q goes on; it printed\n%s", f.args, f.text)
	}
	if got := plain(f.text); got != want {
		f.t.Errorf("kubectl %q: got\n%swant\n%s", f.args, got, want)
	}
}
