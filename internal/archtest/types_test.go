package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// A namedType is a type that production code declares at the top level of a file.
type namedType struct {
	pkg     *sourcePackage
	file    *sourceFile
	spec    *ast.TypeSpec
	methods map[*sourceFile]int // the number of methods in each file
	// constructors are the files with a constructor: a function whose first result is the type. Its
	// name is New, or new or New followed by the name of the type.
	constructors []*sourceFile
}

// name returns the name of t with its package.
func (t *namedType) name() string { return t.pkg.path + "." + t.spec.Name.Name }

// count returns the number of methods of t.
func (t *namedType) count() (n int) {
	for _, k := range t.methods {
		n += k
	}
	return n
}

// namedTypes returns the types of p in the order of their files.
func namedTypes(p *sourcePackage) []*namedType {
	byName := map[string]*namedType{}
	var all []*namedType
	for _, f := range p.production() {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					t := &namedType{pkg: p, file: f, spec: s, methods: map[*sourceFile]int{}}
					byName[s.Name.Name] = t
					all = append(all, t)
				}
			}
		}
	}
	for _, f := range p.production() {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if fn.Recv != nil {
				if t := byName[receiverName(fn)]; t != nil {
					t.methods[f]++
				}
			} else if t := constructed(fn, byName); t != nil {
				t.constructors = append(t.constructors, f)
			}
		}
	}
	return all
}

// constructed returns the type that fn constructs, or nil.
func constructed(fn *ast.FuncDecl, byName map[string]*namedType) *namedType {
	results := fn.Type.Results
	if results == nil {
		return nil
	}
	name := receiverType(results.List[0].Type)
	t := byName[name]
	if t == nil || name == "" {
		return nil
	}
	if fn.Name.Name == "New" || strings.EqualFold(fn.Name.Name, "new"+name) {
		return t
	}
	return nil
}

// A type with at least fewMethods methods has a home: the file that declares it, with its
// constructor and at least one of minHome methods. A reader finds the rest in maxHomes files.
const (
	fewMethods = 4
	minHome    = 3
	maxHomes   = 4
)

// scattered lists the types that are the subject of a whole package. Each file of such a package
// has the methods for one aspect, which the text describes.
var scattered = map[string]string{
	"internal/history.Log":                         "a file for writes, retention, each way to read, and restarts",
	"store.CollectionSpec":                         "a file for each rule that a collection declares",
	"kubeapi.Handler":                              "a file for each part of Kubernetes' API",
	"kubeapi.call":                                 "a file for each verb",
	"kubeapi.Resource":                             "a file for each use of the description",
	"observe/metrics.Metrics":                      "a file for the metrics of each part of a server",
	"conformance/harness.Env":                      "a file for each kind of action that a case can take",
	"cmd/listwatch/internal/doctorcmd.examination": "a file for the checks of each part of a connection",
}

// checkHomes returns the types whose declaration is far from what they do.
func checkHomes(r *repository) []string {
	var bad []string
	found := map[string]bool{}
	for _, p := range r.packages {
		for _, t := range namedTypes(p) {
			n := t.count()
			if n < fewMethods {
				continue
			}
			at := t.file.at(t.spec.Pos())
			if len(t.constructors) > 0 && !slices.Contains(t.constructors, t.file) {
				bad = append(bad, fmt.Sprintf("%s: the constructor of %s is in %s: move one to the other",
					at, t.name(), base(t.constructors[0])))
			}
			if here := t.methods[t.file]; here*minHome >= n && len(t.methods) <= maxHomes {
				continue
			}
			if found[t.name()] = true; scattered[t.name()] == "" {
				bad = append(bad,
					fmt.Sprintf("%s: %s has %d of its %d methods in its own file, and the others in %d files; "+
						"want a third, and at most %d: %s", at, t.name(), t.methods[t.file], n, len(t.methods)-1,
						maxHomes-1, t.places()))
			}
		}
	}
	return append(bad, unused("scattered", scattered, found)...)
}

// places returns the files with methods of t, the file with the most methods first.
func (t *namedType) places() string {
	var files []*sourceFile
	for f := range t.methods {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *sourceFile) int {
		return cmp.Or(t.methods[b]-t.methods[a], cmp.Compare(a.path, b.path))
	})
	var list []string
	for _, f := range files {
		list = append(list, fmt.Sprintf("%s %d", base(f), t.methods[f]))
	}
	return strings.Join(list, ", ")
}

// maxInterface is the maximum number of methods of an interface. Methods of embedded interfaces do
// not count.
const maxInterface = 4

// wideInterfaces lists the interfaces that have more methods, with the reason.
var wideInterfaces = map[string]string{
	"conformance/harness.T":                  "the methods of testing.TB that a run outside of go test has, too",
	"internal/ordered.Set":                   "it hides a B-tree from the compiler, and has one implementation",
	"transport/websocket/library.ServerConn": "one end of a WebSocket, whose methods every library has",
}

// checkInterfaces returns the interfaces with too many methods.
func checkInterfaces(r *repository) []string {
	var bad []string
	found := map[string]bool{}
	for _, p := range r.packages {
		for _, t := range namedTypes(p) {
			i, ok := t.spec.Type.(*ast.InterfaceType)
			if !ok {
				continue
			}
			n := 0
			for _, m := range i.Methods.List {
				n += len(m.Names)
			}
			if n > maxInterface {
				if found[t.name()] = true; wideInterfaces[t.name()] == "" {
					bad = append(bad, fmt.Sprintf("%s: %s has %d methods, want at most %d: what does each caller need?",
						t.file.at(t.spec.Pos()), t.name(), n, maxInterface))
				}
			}
		}
	}
	return append(bad, unused("wideInterfaces", wideInterfaces, found)...)
}

// checkOptions returns the constructors with functional options: a variadic number of functions
// that change something and return nothing. Options are the fields of a struct, which godoc shows
// in one place.
func checkOptions(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		setters := map[string]bool{}
		for _, t := range namedTypes(p) {
			setters[t.spec.Name.Name] = isSetter(t.spec.Type)
		}
		for _, f := range p.production() {
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv != nil || !fn.Name.IsExported() || fn.Type.Params.NumFields() == 0 {
					continue
				}
				params := fn.Type.Params.List
				last, ok := params[len(params)-1].Type.(*ast.Ellipsis)
				if !ok {
					continue
				}
				if id, ok := last.Elt.(*ast.Ident); isSetter(last.Elt) || ok && setters[id.Name] {
					bad = append(bad, fmt.Sprintf("%s: %s.%s has functional options: use the fields of a struct",
						f.at(fn.Pos()), p.path, fn.Name.Name))
				}
			}
		}
	}
	return bad
}

// isSetter reports whether t is a function that takes a pointer and returns nothing.
func isSetter(t ast.Expr) bool {
	fn, ok := t.(*ast.FuncType)
	if !ok || fn.Results != nil || fn.Params.NumFields() != 1 {
		return false
	}
	_, ok = fn.Params.List[0].Type.(*ast.StarExpr)
	return ok
}

// unused returns the entries of the table that are not needed.
func unused(name string, table map[string]string, found map[string]bool) []string {
	var bad []string
	for _, entry := range slices.Sorted(maps.Keys(table)) {
		if !found[entry] {
			bad = append(bad, fmt.Sprintf("%s is not an exception: remove it from %s", entry, name))
		}
	}
	return bad
}

// checkReceivers returns the methods whose receiver is not the first letter of a word of the type's
// name, such as s for a LabelSelector: usually the letter of a name that the type had before.
func checkReceivers(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		for _, f := range p.production() {
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv == nil || len(fn.Recv.List[0].Names) == 0 {
					continue
				}
				typ, got := receiverType(fn.Recv.List[0].Type), fn.Recv.List[0].Names[0].Name
				if got != "_" && !strings.Contains(initials(typ), got) {
					bad = append(bad, fmt.Sprintf("%s: the receiver of %s.%s is %s, want a letter of %q",
						f.at(fn.Pos()), typ, fn.Name.Name, got, initials(typ)))
				}
			}
		}
	}
	return bad
}

// initials returns the first letters of the words of name, in lower case.
func initials(name string) string {
	s := strings.ToLower(name[:1])
	for _, r := range name[1:] {
		if unicode.IsUpper(r) {
			s += string(unicode.ToLower(r))
		}
	}
	return s
}

func receiverType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverType(e.X)
	case *ast.IndexExpr:
		return receiverType(e.X)
	case *ast.IndexListExpr:
		return receiverType(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
