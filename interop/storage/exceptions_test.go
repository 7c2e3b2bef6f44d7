package storage

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An exception is a test of the suite that cannot pass, with the assertion that fails in this test.
type exception struct{ name, assertion string }

var exceptions = []exception{
	{
		"RunTestGetListWithErrorAggregation",
		"the Status of a failed list has a cause for each object that could not be decrypted, up to 100: " +
			"our stores have no encryption at rest, and Kubernetes' etcd store collects these errors above its " +
			"transformer",
	},
}

const suitePackage = "k8s.io/apiserver/pkg/storage/testing"

// exportedTests returns the names of all tests of the suite.
func exportedTests(t *testing.T) []string {
	t.Helper()
	pkg, err := build.Import(suitePackage, ".", 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range pkg.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), pkg.Dir+"/"+file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Run") {
				names = append(names, d.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// calledTests returns the names of the tests of the suite that the code of n calls.
func calledTests(n ast.Node) []string {
	names := make(map[string]bool)
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Run") {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "storagetesting" {
				names[s.Sel.Name] = true
			}
		}
		return true
	})
	return slices.Sorted(maps.Keys(names))
}

// testFiles returns the parsed test files of this package.
func testFiles(t *testing.T) []*ast.File {
	t.Helper()
	var files []*ast.File
	names, err := fs.Glob(os.DirFS("."), "*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

func TestEveryRunnerIsRunOrExcepted(t *testing.T) {
	var got []string
	for _, f := range testFiles(t) {
		got = append(got, calledTests(f)...)
	}
	slices.Sort(got)
	got = slices.Compact(got) // benchmarks may use a test several times
	for _, e := range exceptions {
		got = append(got, e.name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(exportedTests(t), got); diff != "" {
		t.Errorf("the tests that are run or excepted differ from those of %s (-want +got):\n%s", suitePackage, diff)
	}
}

func TestRunnerNamesMatch(t *testing.T) {
	entries := 0
	for _, f := range testFiles(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			name := entryName(n)
			if name == "" {
				return true
			}
			entries++
			if got := calledTests(n); !slices.Equal(got, []string{name}) {
				t.Errorf("the entry %s calls %v, want only that test", name, got)
			}
			return false
		})
	}
	if want := len(writeTests) + len(readTests) + len(watchTests); entries != want {
		t.Errorf("got %d entries, want %d", entries, want)
	}
}

// entryName returns the name of an entry in a table of suiteTests. It returns "" if n is not
// such an entry.
func entryName(n ast.Node) string {
	entry, ok := n.(*ast.CompositeLit)
	if !ok || len(entry.Elts) == 0 {
		return ""
	}
	first, ok := entry.Elts[0].(*ast.KeyValueExpr)
	if !ok {
		return ""
	}
	key, ok := first.Key.(*ast.Ident)
	text, isText := first.Value.(*ast.BasicLit)
	if !ok || !isText || key.Name != "name" {
		return ""
	}
	name, err := strconv.Unquote(text.Value)
	if err != nil {
		return ""
	}
	return name
}

func TestFewExceptions(t *testing.T) {
	if all := len(exportedTests(t)); 5*len(exceptions) >= all {
		t.Errorf("%d of %d tests are exceptions, want less than a fifth", len(exceptions), all)
	}
}
