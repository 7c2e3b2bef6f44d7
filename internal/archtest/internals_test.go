package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkInternalImports compares the internal packages of the root module that nested modules import
// with the list internalImports, and returns the differences.
func checkInternalImports(r *repository) []string {
	var bad []string
	used := map[string]bool{} // module + " " + package
	for _, p := range r.packages {
		if p.module == "." {
			continue
		}
		for _, f := range internalsCheckedIn(p) {
			for _, spec := range f.ast.Imports {
				target, ours := ourPackage(unquote(spec.Path.Value))
				if !ours || !strings.HasPrefix(target, "internal/") {
					continue
				}
				used[p.module+" "+target] = true
				if !slices.Contains(internalImports[p.module], target) {
					bad = append(bad, fmt.Sprintf(
						"%s: module %s must not import %s: use exported names, or add it to internalImports in internal/archtest/modulerules_test.go",
						f.at(spec.Pos()), p.module, target))
				}
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(internalImports)) {
		for _, target := range internalImports[m] {
			if !used[m+" "+target] {
				bad = append(bad, fmt.Sprintf("module %s no longer imports %s: remove it from internalImports", m, target))
			}
		}
	}
	return bad
}

// internalsCheckedIn returns the files of p that must not import internal packages. The tests of
// examples/extending are checked too: readers copy them.
func internalsCheckedIn(p *sourcePackage) []*sourceFile {
	if p.module == "examples/extending" {
		return p.files
	}
	return p.production()
}

func unquote(literal string) string {
	s, _ := strconv.Unquote(literal) // the parser has accepted it
	return s
}
