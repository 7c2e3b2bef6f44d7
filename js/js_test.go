package js_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/js"
)

// lookPath returns the path of a program of Node.js. If the program is missing, the test is
// skipped. If the environment variable CI is true, it fails instead.
func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing; with CI=true it is required", name)
	}
	t.Skipf("%s is missing; install Node.js", name)
	return ""
}

func TestUnitTestsPassInNode(t *testing.T) {
	tests, err := filepath.Glob("test/*.test.js")
	if err != nil || len(tests) == 0 {
		t.Fatalf("found the tests %q, %v", tests, err)
	}
	for _, file := range tests {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel() // the tests mostly wait
			node := exec.CommandContext(t.Context(), lookPath(t, "node"), "--test-reporter=tap", file)
			out, err := node.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "# fail 0") {
				t.Errorf("node %s: %v\n%s", file, err, out)
			}
		})
	}
}

// The parameters that a request sets itself must be the same as in the client for Go.
func TestClientsOwnTheSameParameters(t *testing.T) {
	for file, want := range map[string][]string{
		"src/requests.js": append(rest.Names(rest.Reads), "pretty"),
		"src/objects.js":  append(rest.Names(rest.Selects), "timeoutSeconds"),
	} {
		source, err := js.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(string(source), "const owned = ")
		list, _, _ = strings.Cut(list, ";")
		var got []string
		if err := json.Unmarshal([]byte(list), &got); err != nil {
			t.Fatalf("%s: owned is %q: %v", file, list, err)
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: owned has %q, want %q", file, got, want)
		}
	}
}

// npm must pack exactly the files that the server embeds, the license, the README and package.json.
func TestNpmPacksOnlyTheClient(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), lookPath(t, "npm"), "pack", "--dry-run", "--json")
	cmd.Env = append(os.Environ(), "npm_config_cache="+t.TempDir(), "npm_config_update_notifier=false")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packed []struct{ Files []struct{ Path string } }
	if err := json.Unmarshal(out, &packed); err != nil || len(packed) != 1 {
		t.Fatalf("npm pack wrote %s, %v; want one package", out, err)
	}
	var got []string
	for _, f := range packed[0].Files {
		got = append(got, f.Path)
	}
	want := []string{"LICENSE", "README.md", "package.json"}
	err = fs.WalkDir(js.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			want = append(want, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("npm packs %q, want %q", got, want)
	}
}

func TestHandlerServesOnlyTheClient(t *testing.T) {
	get := func(path, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("If-None-Match", etag)
		w := httptest.NewRecorder()
		js.Handler().ServeHTTP(w, r)
		return w
	}
	module := get("/src/watch.js", "")
	if module.Code != http.StatusOK || !strings.Contains(module.Body.String(), "export function watch") {
		t.Errorf("a module: got %d, %.100s", module.Code, module.Body)
	}
	if again := get("/src/watch.js", module.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("the same module again: got %d, want 304", again.Code)
	}
	for _, path := range []string{"/", "/src", "/src/", "/package.json", "/../js.go", "/listwatch"} {
		if got := get(path, "").Code; got != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got)
		}
	}
}
