//go:build unix

package conformance_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// browserPath returns where a browser is. Without one the test is skipped, but not by the continuous integration, which would not
// notice.
func browserPath(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if name := os.Getenv("LISTWATCH_BROWSER"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("none of %v is here, and with CI=true a browser is a must", names)
	}
	t.Skipf("none of %v is here: install Chromium, or name a browser by LISTWATCH_BROWSER", names)
	return ""
}

// browse opens url in a browser of its own, which is closed at the end of the test.
func openBrowser(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	home := t.TempDir()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, browserPath(t),
		"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+home, "--remote-debugging-port=0",
		"--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-breakpad", "--disable-dev-shm-usage", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		url)
	cmd.Env = append(os.Environ(), "HOME="+home)
	// A browser is many processes. All of them hold the error output open, so Wait returns when all are gone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Cancel() // the browser may have gone by itself: then the test has failed already
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the browser said:\n%s", said.Bytes()[max(0, said.Len()-4<<10):])
		}
	})
}
