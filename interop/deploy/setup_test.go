package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/testbuild"
	"github.com/listwatch/listwatch/interop/internal/testapi"
)

const operations = "../../docs/operations.md"

// A setup is the section of docs/operations.md that sets up two servers. Free ports replace all
// ports in the section.
type setup struct {
	text  string
	ports map[int]int // the free ports by the ports that they replace
}

var loopbackPort = regexp.MustCompile(`127\.0\.0\.1:(\d+)`)

func readSetup(t *testing.T) *setup {
	t.Helper()
	data, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "\n## From nothing to two servers\n")
	if !found {
		t.Fatalf("%s has no section about two servers", operations)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	s := &setup{ports: reservePorts(t, text)}
	s.text = loopbackPort.ReplaceAllStringFunc(text, func(at string) string {
		port, _ := strconv.Atoi(at[strings.Index(at, ":")+1:])
		return s.addr(port)
	})
	return s
}

// reservePorts maps each port in text to a free port. The map also has the ports of
// TestRollingRestartDisturbsNoWatcher. Consecutive ports are mapped to consecutive ports.
func reservePorts(t *testing.T, text string) map[int]int {
	t.Helper()
	var rest []int
	for _, m := range loopbackPort.FindAllStringSubmatch(text+fmt.Sprint(" 127.0.0.1:", h2Port), -1) {
		port, _ := strconv.Atoi(m[1])
		rest = append(rest, port, port+1)
	}
	slices.Sort(rest)
	rest = slices.Compact(rest)
	reserved := make(map[int]int)
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && rest[n] == rest[0]+n {
			n++
		}
		first := ports.ReserveRange(t, n)
		for i, port := range rest[:n] {
			reserved[port] = first + i
		}
		rest = rest[n:]
	}
	return reserved
}

// addr returns the address that replaces a port of the section.
func (s *setup) addr(port int) string {
	reserved, ok := s.ports[port]
	if !ok {
		panic(fmt.Sprintf("port %d is not reserved: add it to reservePorts", port))
	}
	return fmt.Sprint("127.0.0.1:", reserved)
}

// commands returns all commands of the section.
func (s *setup) commands() string {
	var all strings.Builder
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(s.text, -1) {
		all.WriteString(m[1])
	}
	return all.String()
}

// file returns a file that the commands write.
func (s *setup) file(t *testing.T, name string) string {
	t.Helper()
	_, text, found := strings.Cut(s.text, "cat >"+name+" <<'EOF'\n")
	text, _, ended := strings.Cut(text, "\nEOF\n")
	if !found || !ended {
		t.Fatalf("%s does not write %s", operations, name)
	}
	return text + "\n"
}

// need skips the test if a program is missing, or fails it if CI is true.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			testapi.SkipMissing(t, "%s is not installed", p)
		}
	}
}

// buildFolder is the folder for the programs that build compiles. It is set by TestMain.
var buildFolder string

// build builds listwatch and etcd once.
var build = sync.OnceValue(func() error {
	for name, pkg := range map[string]string{
		"listwatch": "github.com/listwatch/listwatch/cmd/listwatch", "etcd": "go.etcd.io/etcd/server/v3",
	} {
		args := append([]string{"build", "-o", filepath.Join(buildFolder, name)}, append(testbuild.Flags(), pkg)...)
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w: %s", pkg, err, out)
		}
	}
	return nil
})

// program returns the path of listwatch or etcd.
func program(t *testing.T, name string) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(buildFolder, name)
}

func TestMain(m *testing.M) {
	var err error
	if buildFolder, err = os.MkdirTemp("", "listwatch-deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(buildFolder) // any remaining files are in the temporary directory
	os.Exit(code)
}

// readyTimeout limits the time until a program is ready.
const readyTimeout = 5 * time.Minute

// A process is a program that runs until the end of the test. Its output goes to a file.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed after it has exited
	log  string
}

// startProcess starts a program in dir.
func startProcess(t *testing.T, dir, name string, args ...string) *process {
	t.Helper()
	p := &process{
		t: t, cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{}),
		log: filepath.Join(dir, name+".log"),
	}
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, output, output
	// A killed process leaves its temporary files behind, so they must be in dir.
	p.cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	// nginx starts child processes. They are in the process group of the program, so that all of
	// them can be killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // returns when the process exits
		_ = p.cmd.Wait() // stop reads the result
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have exited
		<-p.done
		if t.Failed() {
			p.showLog(name)
		}
	})
	return p
}

func (p *process) showLog(name string) {
	text, _ := os.ReadFile(p.log) // an error leaves the text shorter or empty
	p.t.Logf("%s:\n%s", name, text[max(0, len(text)-4000):])
}

// awaitReady waits until url responds with status 200.
func (p *process) awaitReady(url string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), readyTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-p.done:
			p.t.Fatalf("%s exited: %v", p.cmd, p.cmd.ProcessState)
		case <-ctx.Done():
			p.t.Fatalf("%s is not ready after %v", url, readyTimeout)
		}
	}
}

// stop sends a signal and waits until the process exits. The exit status must be 0.
func (p *process) stop(signal os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	<-p.done
	if !p.cmd.ProcessState.Success() {
		p.t.Errorf("%s: %v", p.cmd, p.cmd.ProcessState)
	}
}

// goEnv returns the settings that the go command derives from the home directory of the user. The
// commands need them because they run with another home directory. goEnv adds the build flags of
// the test binary, so that the go command can reuse compiled packages.
func goEnv(t *testing.T) []string {
	t.Helper()
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"}
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"env", "-json"}, names...)...).Output()
	values := make(map[string]string)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(out)).Decode(&values)
	}
	if err != nil {
		t.Fatal(err)
	}
	values["GOFLAGS"] += " " + strings.Join(testbuild.Flags(), " ")
	var env []string
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	return env
}
