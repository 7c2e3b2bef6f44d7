package kubetest

import (
	"os"
	"testing"
)

// Lacking skips a test for which something is not here, but not in the continuous integration, which would not notice.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("a must with CI=true: "+format, args...)
	}
	t.Skipf(format, args...)
}
