package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// showsInternals lists the public packages that may show internal types: they are for the tests of
// this repository, or for its other packages.
var showsInternals = map[string]bool{
	"conformance/harness":     true,
	"kubeapi/kubeproto":       true,
	"kubeapi/table":           true,
	"transport/transporttest": true,
}

// checkExportedTypes returns the exported functions, methods and fields of public packages whose
// types are of internal packages of this repository. No caller outside could use them.
func checkExportedTypes(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		if slices.Contains(strings.Split(p.path, "/"), "internal") || showsInternals[p.path] {
			continue
		}
		for _, f := range p.production() {
			if f.ast.Name.Name == "main" {
				continue
			}
			internals := internalNames(f)
			report := func(name string, types *ast.FieldList) {
				if types == nil || !ast.IsExported(name) {
					return
				}
				for _, t := range types.List {
					if sel := internalType(t.Type, internals); sel != nil {
						bad = append(bad,
							fmt.Sprintf("%s: %s shows the internal type %v.%s: use a public type, or do not export it",
								f.at(sel.Pos()), name, sel.X, sel.Sel.Name))
					}
				}
			}
			eachExported(f.ast, report)
		}
	}
	return bad
}

// eachExported calls visit with the parameters and results of each function and method, the methods
// of each interface, and the fields of each struct. name is not exported if the declaration, or the
// type that it belongs to, is not.
func eachExported(f *ast.File, visit func(name string, types *ast.FieldList)) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name := d.Name.Name; d.Recv == nil || ast.IsExported(receiverName(d)) {
				visit(name, d.Type.Params)
				visit(name, d.Type.Results)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && ast.IsExported(t.Name.Name) {
					eachMember(t.Type, visit)
				}
			}
		}
	}
}

// eachMember calls visit with each exported field of a struct and each method of an interface.
func eachMember(t ast.Expr, visit func(name string, types *ast.FieldList)) {
	var members *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		members = t.Fields
	case *ast.InterfaceType:
		members = t.Methods
	default:
		return
	}
	for _, m := range members.List {
		for _, name := range m.Names {
			visit(name.Name, &ast.FieldList{List: []*ast.Field{m}})
		}
	}
}

// receiverName returns the name of the type that d is a method of.
func receiverName(d *ast.FuncDecl) (name string) {
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// internalNames returns the names by which f refers to internal packages of this repository.
func internalNames(f *sourceFile) map[string]bool {
	names := map[string]bool{}
	for _, spec := range f.ast.Imports {
		target, ours := ourPackage(unquote(spec.Path.Value))
		if !ours || !slices.Contains(strings.Split(target, "/"), "internal") {
			continue
		}
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	return names
}

// internalType returns the first type in t that belongs to one of the packages, or nil.
func internalType(t ast.Expr, packages map[string]bool) (found *ast.SelectorExpr) {
	ast.Inspect(t, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && packages[id.Name] && found == nil {
				found = sel
			}
		}
		return found == nil
	})
	return found
}
