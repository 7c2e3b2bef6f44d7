package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkInternalImports returns the differences between the table [internalImports] and the source:
// the internal packages of the root module that nested modules import.
func checkInternalImports(r *repository) []string {
	var bad []string
	used := map[string]bool{} // module + " " + package
	for _, p := range r.packages {
		module := p.module
		if module == "." {
			continue
		}
		for _, f := range internalsCheckedIn(p) {
			for _, spec := range f.ast.Imports {
				target, ours := ourPackage(unquote(spec.Path.Value))
				if !ours || !strings.HasPrefix(target, "internal/") {
					continue
				}
				used[module+" "+target] = true
				if !slices.Contains(internalImports[module], target) {
					bad = append(bad, fmt.Sprintf(
						"%s: module %s must not import %s: use exported names, or add it to internalImports in internal/archtest/modulerules_test.go",
						f.at(spec.Pos()), module, target))
				}
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(internalImports)) {
		for _, target := range internalImports[m] {
			if !used[m+" "+target] {
				bad = append(bad, fmt.Sprintf("module %s no longer imports %s: remove it from internalImports", m,
					target))
			}
		}
	}
	return bad
}

// internalsCheckedIn returns the files of p whose internal imports must be listed. For examples it
// includes the tests, because readers copy them.
func internalsCheckedIn(p *sourcePackage) []*sourceFile {
	if inside(p.path, "examples") {
		return p.files
	}
	return p.production()
}

func unquote(literal string) string {
	s, _ := strconv.Unquote(literal) // the parser has accepted it
	return s
}
