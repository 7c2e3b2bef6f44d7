package archtest

import (
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the repository, from the directory of this package.
const root = "../.."

var checks = []struct {
	claim string
	check func([]*sourcePackage) []string
}{
	{"ImportsPointDown", checkImports},
	{"EveryPackageHasOneComment", checkPackageComments},
	{"EveryExportedNameIsDocumented", checkDocumented},
	{"NoFileIsTooLong", checkSize},
	{"NobodySleepsInRealTime", checkSleeps},
	{"NothingIsPromised", checkPromises},
	{"DurationsAreOfTheMonotonicClock", checkClocks},
}

func TestSource(t *testing.T) {
	pkgs, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		t.Run(c.claim, func(t *testing.T) {
			for _, bad := range c.check(pkgs) {
				t.Error(bad)
			}
		})
	}
}

func TestLoadFindsThisPackageAndTheRoot(t *testing.T) {
	pkgs, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, p := range pkgs {
		found[p.path] = len(p.production())
	}
	if found["."] == 0 || found["internal/archtest"] == 0 {
		t.Errorf("got packages %v, want the root and internal/archtest among them", found)
	}
}

func TestLoadPassesOverTestdataAndMarksNestedModules(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go":               "package a",
		"testdata/broken.go": "no Go at all",
		"nested/go.mod":      "module nested",
		"nested/deep/b.go":   "package b",
		".hidden/c.go":       "package c",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pkgs, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) != 2 || pkgs[0].path != "." || pkgs[0].nested || pkgs[1].path != "nested/deep" || !pkgs[1].nested {
		t.Errorf("got %v, want the root package and that of the nested module", pkgs)
	}
}

func TestEveryPatternIsValidAndNoPackageHasTwoLayers(t *testing.T) {
	seen := map[string]string{}
	for _, l := range layers {
		for _, p := range l.packages {
			if other, ok := seen[p]; ok {
				t.Errorf("%s is in the layers of %s and of %s", p, other, l.what)
			}
			seen[p] = l.what
			if sample := strings.NewReplacer("*", "x", "/...", "").Replace(p); !matchAny([]string{p}, sample) {
				t.Errorf("%s does not match %s", p, sample)
			}
		}
	}
	for _, l := range limits {
		for _, p := range append(append([]string{}, l.packages...), l.only...) {
			if seen[p] == "" {
				t.Errorf("a limit names %s, which is in no layer", p)
			}
		}
	}
}

// parse makes packages of fabricated files: path → source.
func parse(t *testing.T, files map[string]string) []*sourcePackage {
	t.Helper()
	l := &loader{fset: token.NewFileSet(), packages: map[string]*sourcePackage{}}
	for name, src := range files {
		if err := l.add(name, []byte(src)); err != nil {
			t.Fatal(err)
		}
	}
	return l.order
}
