package archtest

import (
	"fmt"
	"path"
	"strings"
)

// checkImports returns the imports that the tables of layers_test.go forbid. Test files are not
// checked: the compiler keeps them free of cycles.
func checkImports(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		files := p.production()
		if len(files) == 0 {
			continue
		}
		from, ok := locate(p.path)
		if !ok {
			bad = append(bad, p.path+": an unknown package: add it to a layer in internal/archtest/layers_test.go")
			continue
		}
		for _, f := range files {
			for _, spec := range f.ast.Imports {
				target := unquote(spec.Path.Value)
				if why := forbidden(from, target); why != "" {
					bad = append(bad, fmt.Sprintf("%s: %s must not import %s: %s", f.at(spec.Pos()), p.path,
						target, why))
				}
			}
		}
	}
	return bad
}

// A location is the place of a package in the layers.
type location struct {
	path string
	rank int    // the index of its layer
	unit string // see match; packages of the same unit may import each other
}

// locate looks up the package p in the layers.
func locate(p string) (location, bool) {
	for rank, l := range layers {
		for _, pattern := range l.packages {
			if unit, ok := match(pattern, p); ok {
				return location{p, rank, unit}, true
			}
		}
	}
	return location{}, false
}

// forbidden returns the reason why a package must not import target, or "" if it may.
func forbidden(from location, target string) string {
	if dir, ours := ourPackage(target); ours {
		return forbiddenInternal(from, dir)
	}
	if isStandard(target) || inside(from.path, interopModule) {
		return ""
	}
	return forbiddenDependency(from.path, target)
}

// forbiddenInternal is like forbidden, for a target in this repository.
func forbiddenInternal(from location, target string) string {
	to, ok := locate(target)
	if !ok {
		return "it has no layer in internal/archtest/layers_test.go"
	}
	for _, l := range limits {
		if matchAny(l.packages, from.path) && !matchAny(l.only, target) {
			return l.reason
		}
	}
	switch {
	case to.rank < from.rank, to.unit == from.unit:
		return ""
	case to.rank == from.rank:
		return "they are siblings in the layer: " + layers[from.rank].name
	default:
		return fmt.Sprintf("it is in a higher layer: %s", layers[to.rank].name)
	}
}

// forbiddenDependency is like forbidden, for a target in another repository.
func forbiddenDependency(from, target string) string {
	for _, d := range dependencies {
		if !hasAnyPrefix(target, []string{d.prefix}) {
			continue
		}
		if matchAny(d.packages, from) {
			return ""
		}
		return fmt.Sprintf("only %s may: %s", strings.Join(d.packages, ", "), d.reason)
	}
	return "an unknown dependency: add it to dependencies in internal/archtest/layers_test.go, with its importers and the reason"
}

// isStandard reports whether target belongs to the standard library. Only paths of the standard
// library have no dot in their first element.
func isStandard(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return !strings.Contains(first, ".")
}

func matchAny(patterns []string, p string) bool {
	for _, pattern := range patterns {
		if _, ok := match(pattern, p); ok {
			return true
		}
	}
	return false
}

// match reports whether pattern covers the package p. If pattern ends in "/...", unit is the
// directory that matches the text before "/...", so all packages below that directory share the
// unit. Otherwise unit is p.
func match(pattern, p string) (unit string, ok bool) {
	unit = p
	if base, deep := strings.CutSuffix(pattern, "/..."); deep {
		pattern = base
		unit = firstElements(p, strings.Count(base, "/")+1)
	}
	ok, _ = path.Match(pattern, unit) // an invalid pattern matches nothing
	return unit, ok
}

func firstElements(p string, n int) string {
	elements := strings.Split(p, "/")
	return strings.Join(elements[:min(n, len(elements))], "/")
}
