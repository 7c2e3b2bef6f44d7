//go:build unix

package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An Engine is a browser engine that tests run a page in.
type Engine string

// The engines. Chromium is the browser that Open uses.
const (
	Chromium Engine = "Chromium"
	Firefox  Engine = "Firefox"
	WebKit   Engine = "WebKit"
)

// Engines are all engines.
var Engines = []Engine{Chromium, Firefox, WebKit}

// firefoxPreferences make Firefox start with nothing but the page, and without requests of its own.
const firefoxPreferences = `user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.safebrowsing.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("extensions.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("network.proxy.type", 0);
user_pref("services.settings.server", "http://127.0.0.1:9/");
user_pref("toolkit.telemetry.enabled", false);
user_pref("trailhead.firstrun.didSeeAboutWelcome", true);
`

// OpenIn is Open in a browser with this engine. Several URLs are opened in frames of one page.
// Without such a browser OpenIn skips the test, or fails it if the environment variable CI is true.
func OpenIn(ctx context.Context, t *testing.T, e Engine, urls ...string) {
	t.Helper()
	home, url := t.TempDir(), urls[0]
	if len(urls) > 1 {
		url = serveFrames(t, urls)
	}
	switch e {
	case Firefox:
		path := find(t, "Firefox", "firefox-esr", "firefox")
		if err := os.WriteFile(filepath.Join(home, "user.js"), []byte(firefoxPreferences), 0o600); err != nil {
			t.Fatal(err)
		}
		start(t, exec.CommandContext(ctx, path, "--headless", "--no-remote", "--profile", home, url), home)
	case WebKit:
		// WebKitGTK has no headless mode. Debian installs its browser in the directory of the
		// library.
		browsers, _ := filepath.Glob("/usr/lib/*/webkit2gtk-4.*/MiniBrowser")
		path := find(t, "WebKit's MiniBrowser", append(browsers, "MiniBrowser")...)
		display := find(t, "xvfb-run", "xvfb-run")
		start(t, exec.CommandContext(ctx, display, "-a", path, "--private", url), home,
			"LIBGL_ALWAYS_SOFTWARE=1", "WEBKIT_DISABLE_COMPOSITING_MODE=1", "WEBKIT_DISABLE_DMABUF_RENDERER=1",
			"GSK_RENDERER=cairo", "NO_AT_BRIDGE=1", "no_proxy=*")
	default:
		Open(ctx, t, url)
	}
}

// serveFrames serves a page that has the URLs in frames. It returns the URL of the page.
func serveFrames(t *testing.T, urls []string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for _, url := range urls {
			fmt.Fprintf(w, "<iframe src=%q></iframe>", url)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
