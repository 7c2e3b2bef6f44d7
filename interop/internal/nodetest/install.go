// Package nodetest installs packages of npm for tests.
package nodetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Install installs the packages of the package-lock.json in dir, unless an earlier call has
// installed them. Calls for the same dir must not overlap.
func Install(dir string) error {
	locked, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	installedLock := filepath.Join(dir, "node_modules", ".installed") // a copy of the lock file
	if old, err := os.ReadFile(installedLock); err == nil && bytes.Equal(old, locked) {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return os.WriteFile(installedLock, locked, 0o644)
}
