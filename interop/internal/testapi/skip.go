package testapi

import (
	"os"
	"testing"
)

// SkipMissing skips a test because a program is not installed. In continuous integration,
// with CI=true, it fails the test instead, because a skip would go unnoticed.
func SkipMissing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("required with CI=true: "+format, args...)
	}
	t.Skipf(format, args...)
}
