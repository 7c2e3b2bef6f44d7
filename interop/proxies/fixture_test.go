//go:build unix

package proxies

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/testbuild"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/watchserver/echo"
)

// startTimeout limits the time until a proxy accepts connections. Only failing tests wait that
// long.
const startTimeout = 5 * time.Minute

// startServer starts a server with an empty collection at /things, and returns its address.
func startServer(t *testing.T) string {
	t.Helper()
	c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{APIVersion: "v1", Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	server := &watchserver.Server{Source: c}
	mux := http.NewServeMux()
	mux.Handle("/things", server)
	mux.Handle(echo.Path, &echo.Handler{Server: server})
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

// A proxy is a program that stands between client and server.
type proxy struct {
	command string
	// args returns the arguments that run the program in the foreground with a configuration file.
	args func(file, dir string) []string
	// config is the configuration of the program. ADDR, PORT, SERVER and DIR are replaced by values
	// of the test, and GLOBAL_FAULT, FRONT_FAULT and FAULT by the faults of a test case, if any.
	config string
}

// start runs p with faults in its configuration until the end of the test, and returns its address.
func (p *proxy) start(t *testing.T, server string, faults map[string]string) string {
	t.Helper()
	path, err := exec.LookPath(p.command)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed; with CI=true it is required", p.command)
		}
		t.Skipf("%s is not installed", p.command)
	}
	addr, dir := ports.Address(t), t.TempDir()
	config := strings.NewReplacer("ADDR", addr, "PORT", addr[strings.LastIndex(addr, ":")+1:], "SERVER", server, "DIR",
		dir).Replace(p.config)
	for _, place := range []string{"GLOBAL_FAULT", "FRONT_FAULT", "FAULT"} {
		config = strings.ReplaceAll(config, place, faults[place])
	}
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, p.args(file, dir)...)
	cmd.Stdout, cmd.Stderr = log, log
	// nginx starts child processes. They are in the process group of the program, so that all of
	// them can be killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = cmd.Wait() // the error is that the process was killed
		close(ended)
	})
	t.Cleanup(func() {
		// An error means that the process has already exited, and then the test has failed.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		wg.Wait()
		if output, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s:\n%s\n%s", p.command, config, output)
		}
	})
	awaitListener(t, addr, ended)
	return addr
}

func awaitListener(t *testing.T, addr string, ended <-chan struct{}) {
	t.Helper()
	late := time.After(startTimeout)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		select {
		case <-ticker.C:
		case <-ended:
			t.Fatal("the proxy has exited")
		case <-late:
			t.Fatal("the proxy does not listen")
		}
	}
}

// buildFolder is the folder for the program listwatch. It is set by TestMain.
var buildFolder string

// program builds the command listwatch on the first call, and returns the path of the binary.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildFolder, "listwatch")
	return path, testbuild.Compile(path, "../../cmd/listwatch")
})

func TestMain(m *testing.M) {
	var err error
	if buildFolder, err = os.MkdirTemp("", "listwatch-proxies-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(buildFolder) // any remaining files are in the temporary directory
	os.Exit(code)
}

// A finding is an element of the JSON report of "listwatch doctor".
type finding struct {
	Check, Verdict, Text string
	Remedies             []struct{ Program, Settings string }
}

// examine runs "listwatch doctor" on the collection at addr, and returns the problems by check.
func examine(t *testing.T, addr, idle string) map[string]finding {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, "doctor", "http://"+addr+"/things", "--idle", idle, "-o", "json")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("doctor: %v\n%s", err, stderr.Bytes())
	}
	var report struct{ Findings []finding }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr.Bytes())
	}
	problems := map[string]finding{}
	for _, f := range report.Findings {
		t.Logf("%-8s %-14s %s", f.Verdict, f.Check, f.Text)
		if f.Verdict == "PROBLEM" {
			problems[f.Check] = f
		}
	}
	return problems
}
