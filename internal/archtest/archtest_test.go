package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/racetest"
)

// root is the root of the repository, relative to the directory of this package.
const root = "../.."

var checks = []struct {
	claim string
	check func(*repository) []string
}{
	{"ImportsPointDown", checkImports},
	{"ModulesRequireOnlyWhatTheyMay", checkModules},
	{"WorkspacesListTheModules", checkWorkspaces},
	{"InternalImportsAreListed", checkInternalImports},
	{"ExportedNamesShowNoInternalTypes", checkExportedTypes},
	{"EveryPackageHasOneComment", checkPackageComments},
	{"ExportedNamesAreDocumented", checkDocumented},
	{"PublicPackagesHaveExamples", checkExamples},
	{"FilesAreShort", checkFileSize},
	{"NoTestSleepsInRealTime", checkSleeps},
	{"NoTodoComments", checkTodos},
	{"CommentsAreAtMost100ColumnsWide", checkCommentWidth},
	{"DurationsUseTheMonotonicClock", checkClocks},
	{"StructsHaveFewFields", checkStructSize},
	{"StructsAreWhole", checkParts},
	{"TypesHaveAHome", checkHomes},
	{"InterfacesAreSmall", checkInterfaces},
	{"OptionsAreFields", checkOptions},
	{"ReceiversHaveTheLetterOfTheirType", checkReceivers},
	{"ContextsInStructsHaveAReason", checkContextFields},
	{"CodeIsAtMost120ColumnsWide", checkCodeWidth},
}

func TestSource(t *testing.T) {
	if racetest.Enabled {
		t.Skip("make test runs it without the race detector")
	}
	r, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		t.Run(c.claim, func(t *testing.T) {
			for _, bad := range c.check(r) {
				t.Error(bad)
			}
		})
	}
}

func TestLoadFindsEveryModule(t *testing.T) {
	r, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{}
	for _, p := range r.packages {
		if len(p.production()) > 0 {
			modules[p.path] = p.module
		}
	}
	for _, c := range []struct{ pkg, module string }{
		{".", "."},
		{"internal/archtest", "."},
		{"store/memory", "."},
		{"store/etcd", "store/etcd"},
		{"kubeapi", "kubeapi"},
		{"conformance/report", "conformance"},
		{"cmd/listwatch", "cmd/listwatch"},
		{"examples/extending/longpoll", "examples"},
		{"interop/storage", "interop"},
	} {
		if got, ok := modules[c.pkg]; !ok || got != c.module {
			t.Errorf("package %s: found %t in module %q, want it in module %q", c.pkg, ok, got, c.module)
		}
	}
	for _, rule := range moduleRules {
		if !slices.ContainsFunc(r.modules, func(m *module) bool { return m.dir == rule.dir }) {
			t.Errorf("moduleRules has a rule for %s, which has no go.mod", rule.dir)
		}
	}
}

func TestLoadSkipsTestdataAndHiddenFolders(t *testing.T) {
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
	r, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range r.packages {
		got = append(got, p.module+":"+p.path)
	}
	if want := []string{".:.", "nested:nested/deep"}; !slices.Equal(got, want) {
		t.Errorf("got packages %v, want %v", got, want)
	}
}

func TestTablesAreConsistent(t *testing.T) {
	seen := map[string]string{}
	for _, l := range layers {
		for _, p := range l.packages {
			if other, ok := seen[p]; ok {
				t.Errorf("%s is in two layers: %s, %s", p, other, l.name)
			}
			seen[p] = l.name
			if sample := strings.NewReplacer("*", "x", "/...", "").Replace(p); !matchAny([]string{p}, sample) {
				t.Errorf("pattern %s does not match %s", p, sample)
			}
		}
	}
	for _, l := range limits {
		for _, p := range slices.Concat(l.packages, l.only) {
			if seen[p] == "" {
				t.Errorf("a limit names %s, which is in no layer", p)
			}
		}
	}
	for m := range internalImports {
		if !slices.ContainsFunc(moduleRules, func(rule moduleRule) bool { return rule.dir == m }) {
			t.Errorf("internalImports names module %s, which has no rule", m)
		}
	}
}

// parse makes a repository of fabricated files. The map holds the source by path.
func parse(t *testing.T, files map[string]string) *repository {
	t.Helper()
	l := newLoader()
	for name, text := range files {
		if err := l.add(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return l.finish()
}
