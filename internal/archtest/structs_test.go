package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
)

// A struct has at most maxFields fields. The fields of an embedded struct of the same package
// count, too, because cutting a struct into parts makes it no smaller. A struct of wideStructs has
// at most maxWideFields, and there are at most maxWideStructs of them.
const (
	maxFields      = 20
	maxWideFields  = 35
	maxWideStructs = 12
)

// wideStructs lists the structs that may have more than maxFields fields, with the reason.
var wideStructs = map[string]string{
	"transport/h2/internal/loop.conn":                     "an HTTP/2 connection: most of its fields are owners with methods",
	"watchserver.stream":                                  "a watch: owners with methods, and flags behind no pointer, because a million may be idle",
	"informer.Informer":                                   "the options of a user, and the store that they show",
	"kubeapi.Resource":                                    "the options of a user",
	"kubeapi.servedResource":                              "a Resource, and what is compiled from it",
	"conformance/checker.Summary":                         "a record of figures",
	"cmd/listwatch/internal/benchcmd.Result":              "a record of figures",
	"cmd/listwatch/internal/conformancecmd.serverOptions": "the flags of a command",
}

// eachStruct calls visit for each struct type with a name in the files of production code.
func eachStruct(r *repository, visit func(f *sourceFile, name string, s *ast.StructType)) {
	for _, p := range r.packages {
		for _, f := range p.production() {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if s, ok := spec.Type.(*ast.StructType); ok {
						visit(f, p.path+"."+spec.Name.Name, s)
					}
				}
				return true
			})
		}
	}
}

// structTypes returns the structs of r by their names.
func structTypes(r *repository) map[string]*ast.StructType {
	types := map[string]*ast.StructType{}
	eachStruct(r, func(_ *sourceFile, name string, s *ast.StructType) { types[name] = s })
	return types
}

// checkStructSize returns the structs with too many fields, and the entries of wideStructs that are
// not needed.
func checkStructSize(r *repository) []string {
	var bad []string
	types, wide := structTypes(r), map[string]bool{}
	eachStruct(r, func(f *sourceFile, name string, s *ast.StructType) {
		n, limit := flatFields(types, f, s), maxFields
		if wide[name] = n > maxFields; wideStructs[name] != "" {
			limit = maxWideFields
		}
		if n > limit {
			bad = append(bad,
				fmt.Sprintf("%s: %s has %d fields, want at most %d: which of them have an owner with methods?",
					f.at(s.Pos()), name, n, limit))
		}
	})
	if len(wideStructs) > maxWideStructs {
		bad = append(bad, fmt.Sprintf("wideStructs has %d entries, want at most %d", len(wideStructs), maxWideStructs))
	}
	return append(bad, unused("wideStructs", wideStructs, wide)...)
}

// flatFields returns the number of fields of s. The file f declares s. An embedded struct of the
// same package counts as its fields, and an embedded struct of another package as one field.
func flatFields(types map[string]*ast.StructType, f *sourceFile, s *ast.StructType) (n int) {
	for _, field := range s.Fields.List {
		if part := types[localType(f, field.Type)]; len(field.Names) == 0 && part != nil {
			n += flatFields(types, f, part)
		} else {
			n += max(1, len(field.Names))
		}
	}
	return n
}

// localType returns the name of the type e if the package of f declares it.
func localType(f *sourceFile, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return path.Dir(f.path) + "." + e.Name
	case *ast.IndexExpr:
		return localType(f, e.X)
	}
	return ""
}

// checkContextFields returns the fields that hold a context without a reason in their comment. A
// context is a parameter; only what lives longer than a call, such as a connection, may own one.
func checkContextFields(r *repository) []string {
	var bad []string
	eachStruct(r, func(f *sourceFile, name string, s *ast.StructType) {
		for _, field := range s.Fields.List {
			sel, ok := field.Type.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Context" || field.Doc.Text() != "" || field.Comment.Text() != "" {
				continue
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "context" {
				bad = append(bad,
					fmt.Sprintf("%s: %s holds a context: pass it, or say in the field's comment what it ends with",
						f.at(field.Pos()), name))
			}
		}
	})
	return bad
}

// checkParts returns the structs that one other struct embeds and that nothing else mentions. Such
// a part has no meaning of its own. If it is exported, users must learn a name for nothing. If it
// has no methods, it is a heading, for which a comment is enough.
func checkParts(r *repository) []string {
	found := mentions(r)
	var bad []string
	for _, p := range r.packages {
		for _, t := range namedTypes(p) {
			m := found[t.name()]
			if _, ok := t.spec.Type.(*ast.StructType); !ok || m == nil || len(m.wholes) != 1 || m.others > 0 {
				continue
			}
			if ast.IsExported(t.spec.Name.Name) || t.count() == 0 {
				bad = append(bad, fmt.Sprintf("%s: %s is only a part of %s: make its fields fields of the whole",
					t.file.at(t.spec.Pos()), t.name(), m.wholes[0]))
			}
		}
	}
	return bad
}

// A mention counts the places where production code mentions a type.
type mention struct {
	wholes []string // the structs of the same package that embed it
	others int      // all other places, except its methods and the literals that construct it
}

// mentions returns the mentions of the types of all packages, by the name of the type.
func mentions(r *repository) map[string]*mention {
	found := map[string]*mention{}
	of := func(name string) *mention {
		if found[name] == nil {
			found[name] = &mention{}
		}
		return found[name]
	}
	for _, p := range r.packages {
		for _, f := range p.production() {
			imports := packageNames(r, f)
			skip := map[ast.Node]bool{} // the names that do not count as mentions
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					skip[n.Name] = true
					if s, ok := n.Type.(*ast.StructType); ok {
						for _, field := range s.Fields.List {
							if id, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 {
								m := of(p.path + "." + id.Name)
								m.wholes = append(m.wholes, p.path+"."+n.Name.Name)
								skip[id] = true
							}
						}
					}
				case *ast.CompositeLit:
					skip[n.Type] = true
				case *ast.KeyValueExpr:
					skip[n.Key] = true
				case *ast.FuncDecl:
					skip[n.Name] = true
					skipReceiver(n, skip)
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" && !skip[n] {
						of(imports[x.Name]+"."+n.Sel.Name).others++
					}
					skip[n.Sel] = true
				case *ast.Ident:
					if !skip[n] {
						of(p.path+"."+n.Name).others++
					}
				}
				return true
			})
		}
	}
	return found
}

// skipReceiver adds the names in the receiver of fn to skip.
func skipReceiver(fn *ast.FuncDecl, skip map[ast.Node]bool) {
	if fn.Recv == nil {
		return
	}
	ast.Inspect(fn.Recv, func(n ast.Node) bool {
		skip[n] = true
		return true
	})
}

// packageNames returns the packages of r that f imports, by the names that f has for them.
func packageNames(r *repository, f *sourceFile) map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		target, ours := ourPackage(unquote(spec.Path.Value))
		if !ours {
			continue
		}
		if spec.Name != nil {
			names[spec.Name.Name] = target
		} else if i := slices.IndexFunc(r.packages, func(p *sourcePackage) bool { return p.path == target }); i >= 0 {
			names[r.packages[i].files[0].ast.Name.Name] = target
		}
	}
	return names
}
