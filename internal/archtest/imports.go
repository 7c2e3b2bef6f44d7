package archtest

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// checkImports returns the imports that the tables forbid, one message each. Test files may import what they like: the compiler keeps
// them free of cycles. So may nested modules, which nobody can import.
func checkImports(pkgs []*sourcePackage) []string {
	var bad []string
	for _, p := range pkgs {
		files := p.production()
		if p.nested || len(files) == 0 {
			continue
		}
		from, ok := place(p.path)
		if !ok {
			bad = append(bad, p.path+": an unknown package: give it a layer in internal/archtest/layers.go")
			continue
		}
		for _, f := range files {
			for _, spec := range f.ast.Imports {
				target, _ := strconv.Unquote(spec.Path.Value)
				if why := forbidden(from, target); why != "" {
					bad = append(bad, fmt.Sprintf("%s: %s must not import %s: %s", f.at(spec.Pos()), p.path, target, why))
				}
			}
		}
	}
	return bad
}

// A position is where a package stands.
type position struct {
	path string
	rank int    // its layer
	unit string // the path that it and those beneath it, where its pattern covers them, have in common
}

// place looks p up in the layers.
func place(p string) (position, bool) {
	for rank, l := range layers {
		for _, pattern := range l.packages {
			if unit, ok := match(pattern, p); ok {
				return position{p, rank, unit}, true
			}
		}
	}
	return position{}, false
}

// forbidden says why a package must not import target; empty: it may.
func forbidden(from position, target string) string {
	switch {
	case target == modulePath || strings.HasPrefix(target, modulePath+"/"):
		rel := strings.TrimPrefix(strings.TrimPrefix(target, modulePath), "/")
		return forbiddenOurs(from, path.Clean(rel))
	case isStandard(target):
		return ""
	default:
		return forbiddenDependency(from.path, target)
	}
}

func forbiddenOurs(from position, target string) string {
	to, ok := place(target)
	if !ok {
		return "it has no layer in internal/archtest/layers.go"
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
		return "they are siblings in the layer of " + layers[from.rank].what
	default:
		return fmt.Sprintf("imports point down, and it is above, in the layer of %s", layers[to.rank].what)
	}
}

func forbiddenDependency(from, target string) string {
	for _, d := range dependencies {
		if target != d.prefix && !strings.HasPrefix(target, d.prefix+"/") {
			continue
		}
		if matchAny(d.packages, from) {
			return ""
		}
		return fmt.Sprintf("only %s may: %s", strings.Join(d.packages, ", "), d.reason)
	}
	return "an unknown dependency: give it a line in internal/archtest/layers.go, with those who may import it and why"
}

// isStandard reports whether target is of the standard library: those alone have no dot in the first element.
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

// match reports whether pattern covers p, and the part of p that stands for all of its unit.
func match(pattern, p string) (unit string, ok bool) {
	unit = p
	if base, deep := strings.CutSuffix(pattern, "/..."); deep {
		pattern = base
		unit = firstElements(p, strings.Count(base, "/")+1)
	}
	// The error is that of a bad pattern, which matches nothing.
	ok, _ = path.Match(pattern, unit)
	return unit, ok
}

// firstElements returns the first n elements of p, or p where it has no more.
func firstElements(p string, n int) string {
	elements := strings.SplitN(p, "/", n+1)
	if len(elements) > n {
		elements = elements[:n]
	}
	return strings.Join(elements, "/")
}
