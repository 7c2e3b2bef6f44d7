package archtest

import (
	"fmt"
	"go/ast"
	"go/doc"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unreleased lists the directories of packages and modules that are only for this repository.
var unreleased = []string{"benchmarks", "examples", "interop", "tools"}

func isReleased(dir string) bool {
	top, _, _ := strings.Cut(dir, "/")
	return !slices.Contains(unreleased, top)
}

// public returns the packages that other modules can import.
func (r *repository) public() []*sourcePackage {
	var all []*sourcePackage
	for _, p := range r.packages {
		files := p.production()
		if len(files) > 0 && files[0].ast.Name.Name != "main" && isReleased(p.path) &&
			!slices.Contains(strings.Split(p.path, "/"), "internal") {
			all = append(all, p)
		}
	}
	return all
}

// checkExamples returns the public packages without an example whose output go test compares.
func checkExamples(r *repository) []string {
	var bad []string
	for _, p := range r.public() {
		var tests []*ast.File
		for _, f := range p.files {
			if f.isTest() {
				tests = append(tests, f.ast)
			}
		}
		if !slices.ContainsFunc(doc.Examples(tests...), func(e *doc.Example) bool { return e.Output != "" }) {
			bad = append(bad, p.path+": no example with an output")
		}
	}
	return bad
}

var quoted = regexp.MustCompile("`([^`]+)`")

// checkRelease returns the public packages and the modules that the given text of RELEASE.md does
// not name. A row of its table of packages also covers the packages below.
func checkRelease(r *repository, release string) []string {
	stability, modules, _ := strings.Cut(release, "\n## Modules\n")
	named := map[string]bool{}
	for line := range strings.Lines(stability) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
				named[m[1]] = true
			}
		}
	}
	var bad []string
	for _, p := range r.public() {
		dir := p.path
		for dir != "." && !named[dir] {
			dir = path.Dir(dir)
		}
		if dir == "." && p.path != "." {
			bad = append(bad, p.path+": RELEASE.md does not say how stable it is")
		}
	}
	for _, m := range r.modules {
		row := fmt.Sprintf("`%s` | %s |", path.Join(m.dir, "v0.X.Y"), tagged(m))
		if isReleased(m.dir) && !strings.Contains(modules, row) {
			bad = append(bad, fmt.Sprintf("%s: RELEASE.md has no tag %s", m.dir, row))
		}
	}
	return bad
}

// tagged returns the last cell of m's row in RELEASE.md. A module that imports no internal package
// of the root module can have a version of its own.
func tagged(m *module) string {
	if m.dir == "." || len(internalImports[m.dir]) > 0 {
		return "together"
	}
	return "alone"
}

func TestReleaseNamesEveryPackage(t *testing.T) {
	r, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "RELEASE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range checkRelease(r, string(text)) {
		t.Error(bad)
	}
}

func TestUnnamedPackagesAreFound(t *testing.T) {
	const release = "| `a` | stable |\n## Modules\n| `example.com/a` | `a/v0.X.Y` | alone |\n"
	r := parse(t, map[string]string{
		"a/a.go": "package a", "a/b/b.go": "package b", "c/c.go": "package c",
		"c/internal/d/d.go": "package d", "examples/e.go": "package e",
	})
	r.modules = []*module{{dir: "a"}, {dir: "c"}, {dir: "examples"}}
	got := checkRelease(r, "\n"+release)
	want := []string{"c: RELEASE.md does not say how stable it is", "c: RELEASE.md has no tag `c/v0.X.Y` | alone |"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMissingExamplesAreFound(t *testing.T) {
	const output = "package a_test\n\nfunc Example() {\n\t// Output: 1\n}\n"
	r := parse(t, map[string]string{
		"a/a.go": "package a", "a/a_test.go": output, "b/b.go": "package b",
		"b/b_test.go": strings.ReplaceAll(output, "Output", "Prints"),
	})
	if got, want := checkExamples(r), []string{"b: no example with an output"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
