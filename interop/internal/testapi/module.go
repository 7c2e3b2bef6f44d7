package testapi

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"
)

// DownloadModule returns the directory of a module, such as example.com/a@v1.0.0. It gets the
// module from the module proxy if necessary, and skips the test if that fails.
func DownloadModule(t testing.TB, module string) (directory string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := c.Output()
	var result struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &result); jsonErr != nil {
		SkipMissing(t, "go mod download %s: %v", module, errors.Join(err, jsonErr))
	}
	if result.Error != "" {
		SkipMissing(t, "go mod download %s: %s", module, result.Error)
	}
	return result.Dir
}
