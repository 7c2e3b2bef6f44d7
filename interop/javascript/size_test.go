//go:build unix

package javascript

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/nodetest"
)

const (
	clientDir  = "../../js"
	packageDir = "testdata/node"

	// maxCompressedClient is the maximum size of the minified and compressed client that
	// docs/browsers.md promises, in bytes.
	maxCompressedClient = 8 << 10
)

// esbuild runs esbuild with the arguments and returns its output.
func esbuild(t *testing.T, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(packageDir, "node_modules/.bin/esbuild"), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("esbuild %q: %v\n%s", args, err, &stderr)
	}
	return out
}

func installEsbuild(t *testing.T) {
	t.Helper()
	nodePath(t)
	err := nodetest.Install(packageDir)
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
}

func TestCompressedClientIsSmall(t *testing.T) {
	installEsbuild(t)
	minified := esbuild(t, filepath.Join(clientDir, "listwatch.js"), "--bundle", "--minify", "--format=esm", "--target=es2022")
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(minified); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("listwatch.js: %d bytes, compressed %d", len(minified), compressed.Len())
	if n := compressed.Len(); n < 1<<10 || n > maxCompressedClient {
		t.Errorf("listwatch.js has %d bytes when minified and compressed, want 1024 to %d", n, maxCompressedClient)
	}
}

func TestDeclarationsAreTypeScript(t *testing.T) {
	installEsbuild(t)
	esbuild(t, filepath.Join(clientDir, "listwatch.d.ts"))
}
