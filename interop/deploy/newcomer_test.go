package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestNewcomerSetsUpTwoServers runs the commands of docs/operations.md as they are printed, except
// for the ports.
func TestNewcomerSetsUpTwoServers(t *testing.T) {
	need(t, "bash", "curl", "nginx", "prometheus", "promtool")
	s, home := readSetup(t), t.TempDir()
	folder := filepath.Join(home, "listwatch-trial")
	output, err := os.Create(filepath.Join(home, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd := exec.Command("bash", "-eu", "-o", "pipefail", "-c", s.commands())
	cmd.Dir, cmd.Stdout, cmd.Stderr = "../..", output, output
	cmd.Env = append(append(os.Environ(), goEnv(t)...), "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Run()
	if err != nil {
		t.Errorf("the commands fail: %v", err)
		killNginx(folder)
	}
	if cmd.Process != nil {
		// Kill the programs that still run. If all have exited, as they should, Kill fails.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	text, err := os.ReadFile(output.Name())
	if err != nil {
		t.Fatal(err)
	}
	for want, most := range map[string]int{
		"no problems found": 1, "is valid prometheus config": 1, "\nADDED ": 1, "\nDELETED ": 1,
		"listwatch_watches{": 2, // Prometheus may also see a watch of "listwatch doctor"
	} {
		if n := strings.Count(string(text), want); n < 1 || n > most {
			t.Errorf("the output contains %q %d times, want 1 to %d", want, n, most)
		}
	}
	if t.Failed() {
		t.Logf("output:\n%s", text)
		logs, _ := filepath.Glob(folder + "/*.log") // the pattern is valid
		for _, file := range logs {
			text, _ := os.ReadFile(file)
			t.Logf("%s:\n%s", file, text[max(0, len(text)-2000):])
		}
	}
}

// killNginx stops the nginx of a failed run. This nginx has left the process group of the run, so
// killing that group does not stop it.
func killNginx(folder string) {
	text, err := os.ReadFile(filepath.Join(folder, "nginx.pid"))
	if err != nil {
		return // nginx has not started
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}
