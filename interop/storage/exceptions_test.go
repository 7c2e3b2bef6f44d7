package storage

import (
	"fmt"
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

// An exception is a runner that can't pass, and the assertion of it that can't hold. docs/kubernetes-storage-suite.md has the same table.
type exception struct{ name, assertion string }

var exceptions = []exception{
	{
		"RunTestCreateWithTTL",
		"a watch sees the DELETED event of an object that was created with a time to live of one second: our stores have none",
	},
	{
		"RunTestGuaranteedUpdateWithTTL",
		"a watch sees the DELETED event of an object that was updated with a time to live of one second: our stores have none",
	},
	{
		"RunTestGetListWithErrorAggregation",
		"the Status of a failed list has a cause for each object that could not be decrypted, up to 100: " +
			"encryption at rest is none of our stores' business, and these are errors that etcd's store collects above its transformer",
	},
}

const (
	suitePackage = "k8s.io/apiserver/pkg/storage/testing"
	document     = "../../docs/kubernetes-storage-suite.md"
)

// exported returns the runners of the suite.
func exported(t *testing.T) []string {
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

// called returns the runners that n names.
func called(n ast.Node) []string {
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

// tests returns the parsed tests of this package.
func tests(t *testing.T) []*ast.File {
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

func TestEveryRunnerIsRunOrAnException(t *testing.T) {
	var got []string
	for _, f := range tests(t) {
		got = append(got, called(f)...)
	}
	slices.Sort(got)
	got = slices.Compact(got) // a benchmark runs over many stores
	for _, e := range exceptions {
		got = append(got, e.name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(exported(t), got); diff != "" {
		t.Errorf("what %s exports, and what is run or excepted, each once (-want +got):\n%s", suitePackage, diff)
	}
}

func TestRunnersHaveTheNamesOfWhatTheyRun(t *testing.T) {
	entries := 0
	for _, f := range tests(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			name := nameOf(n)
			if name == "" {
				return true
			}
			entries++
			if got := called(n); !slices.Equal(got, []string{name}) {
				t.Errorf("the entry %s runs %v", name, got)
			}
			return false
		})
	}
	if want := len(writes) + len(reads) + len(watches); entries != want {
		t.Errorf("found %d entries, want %d", entries, want)
	}
}

// nameOf returns the name of an entry in a table of runners; empty where n is none.
func nameOf(n ast.Node) string {
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

func TestExceptionsAreFewerThanOneInFive(t *testing.T) {
	if all := len(exported(t)); 5*len(exceptions) >= all {
		t.Errorf("%d of %d runners are excepted", len(exceptions), all)
	}
}

func TestTheDocumentHasTheSameExceptions(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, e := range exceptions {
		want = append(want, fmt.Sprintf("| `%s` | %s |", e.name, e.assertion))
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "| `Run") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", document, diff)
	}
	all := len(exported(t))
	if counts := fmt.Sprintf("%d of its %d exported runners", all-len(exceptions), all); !strings.Contains(string(data), counts) {
		t.Errorf("%s does not say that we run %s", document, counts)
	}
}
