package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// maxUpward is the percentage of the uses between the files of a package that may run against the
// order of its files. A package whose files have an order can be read from the bottom up.
const maxUpward = 15

// checkFileLayers returns the packages whose files have no order: however they are sorted, more
// than maxUpward percent of the uses between two files run upwards.
func checkFileLayers(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		uses := fileUses(p.production())
		if up := upward(uses); 100*len(up) > maxUpward*len(uses) && len(up) > 1 {
			bad = append(bad, fmt.Sprintf("%s: %d of %d uses between files run upwards, want at most %d %%: %v",
				p.path, len(up), len(uses), maxUpward, up))
		}
	}
	return bad
}

// A use says that a file uses a name that another file of the package declares.
type use struct{ from, to string }

func (u use) String() string { return u.from + " -> " + u.to }

// fileUses returns the uses between files, each pair of files once. It finds names without the
// types of expressions, so it counts a method only if just one file of the package declares it.
func fileUses(files []*sourceFile) []use {
	names, methods := map[string]string{}, map[string]string{}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			declare(f, d, names, methods)
		}
	}
	var uses []use
	for _, f := range files {
		selected, imports := map[*ast.Ident]bool{}, map[string]bool{}
		for _, spec := range f.ast.Imports {
			imports[path.Base(strings.Trim(spec.Path.Value, `"`))] = true
		}
		add := func(to string, ok bool) {
			if u := (use{base(f), to}); ok && to != u.from && to != "" && !slices.Contains(uses, u) {
				uses = append(uses, u)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				selected[n.Sel] = true
				if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil && imports[x.Name] {
					return true // a name of another package
				}
				to, ok := methods[n.Sel.Name]
				add(to, ok)
			case *ast.FuncDecl:
				selected[n.Name] = true
			case *ast.Field:
				for _, name := range n.Names {
					selected[name] = true
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok {
					selected[key] = true
				}
			case *ast.Ident:
				if !selected[n] {
					to, ok := names[n.Name]
					add(to, ok)
				}
			}
			return true
		})
	}
	slices.SortFunc(uses, func(a, b use) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return uses
}

// declare adds the names that d declares in f. A name that two files declare, such as a method of
// two types, maps to the empty string.
func declare(f *sourceFile, d ast.Decl, names, methods map[string]string) {
	put := func(m map[string]string, name string) {
		if name == "_" {
			return
		}
		if other, ok := m[name]; ok && other != base(f) {
			m[name] = ""
		} else {
			m[name] = base(f)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			put(methods, d.Name.Name)
		} else {
			put(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				put(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					put(names, name.Name)
				}
			}
		}
	}
}

// upward returns the uses that run upwards in the best order of the files that it finds: it moves
// one file at a time to its best place until nothing improves.
func upward(uses []use) []use {
	var order []string
	for _, u := range uses {
		for _, f := range []string{u.from, u.to} {
			if !slices.Contains(order, f) {
				order = append(order, f)
			}
		}
	}
	against := func(order []string) (up []use) {
		for _, u := range uses {
			if slices.Index(order, u.from) < slices.Index(order, u.to) {
				up = append(up, u)
			}
		}
		return up
	}
	best := against(order)
	for improved := true; improved; {
		improved = false
		for i := range order {
			rest := slices.Delete(slices.Clone(order), i, i+1)
			for j := range order {
				candidate := slices.Insert(slices.Clone(rest), j, order[i])
				if up := against(candidate); len(up) < len(best) {
					order, best, improved = candidate, up, true
					break
				}
			}
		}
	}
	return best
}

// base returns the name of the file f without its directory.
func base(f *sourceFile) string { return path.Base(f.path) }
