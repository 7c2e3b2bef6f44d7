//go:build unix

package javascript

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/browsertest"
)

// patience is the time that a case waits for the client. Only failing cases wait that long.
const patience = time.Minute

// nodePath returns the path of Node.js. Without it the test is skipped, or fails if CI is true.
func nodePath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("node is missing; with CI=true it is required")
	}
	t.Skip("node is missing; install Node.js")
	return ""
}

func TestJavaScriptClientConformsInNode(t *testing.T) {
	known, err := conformance.ReadKnownFailures("../../js/test/conformance/known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	checkJavaScriptClient(t, nodePath(t)+" ../../js/test/conformance/node.js", 58,
		conformance.Options{KnownFailures: known})
}

func TestJavaScriptClientConformsInBrowser(t *testing.T) {
	t.Setenv("LISTWATCH_BROWSER", browsertest.Path(t))
	checkJavaScriptClient(t, nodePath(t)+" ../../js/test/conformance/chromium.js", 50, conformance.Options{
		Skip: []string{
			// Browsers drop the received bytes that a page has not read when the connection is
			// reset.
			"framing/truncated-final",
			// Browsers follow 20 redirects instead of ten, and let no page set Cookie.
			"limit/redirect",
			// Browsers rely on CORS, which is disabled here.
			"limit/redirect-headers",
		},
	})
}

// checkJavaScriptClient runs the cases for clients against the client that a command controls, and
// requires a number of passes. Cases that a browser cannot pass are in o.Skip.
func checkJavaScriptClient(t *testing.T, command string, passes int, o conformance.Options) {
	p, err := adapters.ExecClient(t.Context(), command, os.Stderr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	p.Target.Variants, o.Subject, o.Strict = []string{"h1"}, harness.Client, true
	r, err := conformance.Execute(t.Context(), p.Target, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if passed := r.FailTest(t); passed < passes {
		t.Errorf("%d cases passed, want at least %d", passed, passes)
	}
}
