package metrics

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// promtool runs promtool, from Debian's package prometheus, and returns its output. It returns an
// error if promtool finds a problem. Without promtool it skips the test, or fails it if CI is true.
func promtool(t *testing.T, stdin io.Reader, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is missing; with CI=true it is required")
		}
		t.Skip("promtool is missing: install the package prometheus")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// scrapeText returns a scrape of m in the text format.
func scrapeText(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// value returns the value of a series in text, a scrape. The series is the name of a metric with
// its labels, if any.
func value(t *testing.T, text, series string) float64 {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Errorf("series %s is missing", series)
	return -1
}

func countSeries(text string) (n int) {
	for line := range bytes.Lines([]byte(text)) {
		if line[0] != '#' {
			n++
		}
	}
	return n
}
