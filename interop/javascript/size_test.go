//go:build unix

package javascript

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/nodetest"
)

const (
	clientDir  = "../../js"
	packageDir = "testdata/node"

	// maxCompressedClient and maxCompressedReader are the maximum sizes of the minified and
	// compressed client that docs/browsers.md promises, in bytes. The reader is the client without
	// writes. The client spends one KiB on timeouts: of a page's own functions, of IndexedDB, and
	// of connections that broke while the machine slept; and half a KiB on presence.
	maxCompressedClient = 12 << 10
	maxCompressedReader = 10 << 10
)

// esbuild runs esbuild with the arguments and this standard input, and returns its output.
func esbuild(t *testing.T, input string, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(packageDir, "node_modules/.bin/esbuild"), args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("esbuild %q: %v\n%s", args, err, &stderr)
	}
	return out
}

func installPackages(t *testing.T) {
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
	installPackages(t)
	for entry, limit := range map[string]int{
		`export * from "` + clientDir + `/listwatch.js"`:                     maxCompressedClient,
		`export { collection, watch } from "` + clientDir + `/listwatch.js"`: maxCompressedReader,
	} {
		checkSize(t, entry, limit)
	}
}

// checkSize bundles the module entry, and fails the test if the compressed result exceeds limit
// bytes.
func checkSize(t *testing.T, entry string, limit int) {
	t.Helper()
	minified := esbuild(t, entry, "--bundle", "--minify", "--format=esm", "--target=es2022")
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
	t.Logf("%s: %d bytes, compressed %d", entry, len(minified), compressed.Len())
	if n := compressed.Len(); n < 1<<10 || n > limit {
		t.Errorf("%s has %d bytes when minified and compressed, want 1024 to %d", entry, n, limit)
	}
}

// The compiler checks the components of examples/dashboard against the declarations, and the
// bundler finds every value that they import.
func TestReactExamplesCompile(t *testing.T) {
	installPackages(t)
	components := []string{"oidc.tsx", "flags.tsx", "orders.tsx"}
	dir, err := os.MkdirTemp(packageDir, "react") // below node_modules, so that imports are found
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const config = `{"compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": false, "jsx": "react-jsx",
		"target": "es2022", "module": "preserve", "lib": ["es2023", "dom", "dom.iterable"], "types": [],
		"preserveSymlinks": true}, "files": ["oidc.tsx", "flags.tsx", "orders.tsx"]}`
	files := map[string]string{"tsconfig.json": config}
	for _, name := range components {
		text, err := os.ReadFile(filepath.Join(reactDir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(filepath.Join(packageDir, "node_modules/.bin/tsc"), "--project",
		dir).CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, out)
	}
	for _, name := range components {
		esbuild(t, "", filepath.Join(dir, name), "--bundle", "--format=esm", "--preserve-symlinks")
	}
}
