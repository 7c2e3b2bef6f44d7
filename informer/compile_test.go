package informer_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testbuild"
)

// A package that uses an informer and a store must not compile the B-tree again; see
// internal/ordered.
func TestUsersDoNotCompileTheBTree(t *testing.T) {
	for path, want := range map[string]bool{"internal/ordered": false, "informer": true, "examples/controller": false} {
		args := append([]string{"list", "-export", "-f", "{{.Export}}"}, testbuild.Flags()...)
		out, err := exec.CommandContext(t.Context(), "go",
			append(args, "github.com/listwatch/listwatch/"+path)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := os.ReadFile(strings.TrimSpace(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(compiled, []byte("tidwall/btree.(*BTreeG[")); got != want {
			t.Errorf("%s contains methods of the B-tree: %v, want %v", path, got, want)
		}
	}
}
