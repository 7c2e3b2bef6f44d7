//go:build unix

package browsertest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Path returns the path of a browser. Without a browser it skips the test, or fails it if the
// environment variable CI is true.
func Path(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if name := os.Getenv("LISTWATCH_BROWSER"); name != "" {
		names = []string{name}
	}
	return find(t, "a browser such as Chromium (set LISTWATCH_BROWSER to another one)", names...)
}

// find returns the path of the first of these programs that is found. Without one it skips the
// test, or fails it if the environment variable CI is true.
func find(t *testing.T, what string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("found none of %q; with CI=true the test requires %s", names, what)
	}
	t.Skipf("found none of %q; install %s", names, what)
	return ""
}

// Open opens url in a new browser, which is killed at the end of the test. flags are additional
// flags of Chromium.
func Open(ctx context.Context, t *testing.T, url string, flags ...string) {
	t.Helper()
	home := t.TempDir()
	start(t, exec.CommandContext(ctx, Path(t), append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + home, "--remote-debugging-port=0",
		"--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
		"--disable-sync",
		"--disable-breakpad", "--disable-dev-shm-usage", "--no-proxy-server",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		url,
	}, flags...)...), home)
}

// start starts a browser, which is killed at the end of the test. env is added to its environment.
func start(t *testing.T, cmd *exec.Cmd, home string, env ...string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Env = append(append(os.Environ(), "HOME="+home), env...)
	// A browser has many processes that share its standard error, and Wait returns only
	// when all have exited, so Cancel kills the whole process group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Cancel() // fails only if the browser has exited, and then the test has failed
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("standard error of the browser:\n%s", stderr.Bytes()[max(0, stderr.Len()-4<<10):])
		}
	})
}
