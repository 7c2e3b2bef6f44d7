package clients

import (
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/testapi"
)

// pythonPath returns the path of a Python that has the client installed.
func pythonPath(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(path, "-c", "import kubernetes").Run() == nil {
			return path
		}
	}
	testapi.SkipMissing(t, "no Python with the package kubernetes is installed (Debian: python3-kubernetes)")
	return ""
}

func TestPythonClientWritesAndWatches(t *testing.T) {
	python := pythonPath(t)
	const script = "testdata/python/smoke.py"
	// This check makes go test's cache depend on the script.
	if _, err := os.Stat(script); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, script, testapi.Start(t).URL())
	cmd.Stderr = t.Output()
	got, err := cmd.Output()
	const want = `create a
create again 409 Conflict
ADDED None
replace a
MODIFIED {'x': 'y'}
DELETED {'x': 'y'}
read 404 Not Found
watch 410
`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("the output differs (-want +got):\n%s\nerror: %v", diff, err)
	}
}
