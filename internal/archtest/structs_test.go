package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxFields is the number of fields above which a struct should be split into sub-states that say
// who owns them.
const maxFields = 12

// largeStructs lists the structs that may have more fields than maxFields: options of users, whose
// nesting would be theirs to write, and records of figures.
var largeStructs = map[string]bool{
	"client.Remote":                               true,
	"informer.Informer":                           true,
	"store/etcd.Options":                          true,
	"observe/metrics.Metrics":                     true,
	"kubeapi/clusterrelay.Options":                true,
	"conformance/checker.Summary":                 true,
	"cmd/listwatch/internal/benchcmd.Result":      true,
	"cmd/listwatch/internal/benchcmd.recorder":    true,
	"cmd/listwatch/internal/listen.Options":       true,
	"cmd/listwatch/internal/relaycmd.relayStatus": true,
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

// checkStructSize returns the structs with more than maxFields fields, and the entries of
// largeStructs that are not needed.
func checkStructSize(r *repository) []string {
	var bad []string
	found := map[string]bool{}
	eachStruct(r, func(f *sourceFile, name string, s *ast.StructType) {
		n := 0
		for _, field := range s.Fields.List {
			n += max(1, len(field.Names))
		}
		if n <= maxFields {
			return
		}
		found[name] = true
		if !largeStructs[name] {
			bad = append(bad, fmt.Sprintf("%s: %s has %d fields, want at most %d: split it by owner", f.at(s.Pos()), name, n, maxFields))
		}
	})
	for _, name := range slices.Sorted(maps.Keys(largeStructs)) {
		if !found[name] {
			bad = append(bad, fmt.Sprintf("%s is not a struct with more than %d fields: remove it from largeStructs", name, maxFields))
		}
	}
	return bad
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
				bad = append(bad, fmt.Sprintf("%s: %s holds a context: pass it, or say in the field's comment what it ends with", f.at(field.Pos()), name))
			}
		}
	})
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
					bad = append(bad, fmt.Sprintf("%s: the receiver of %s.%s is %s, want a letter of %q", f.at(fn.Pos()), typ, fn.Name.Name, got, initials(typ)))
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

// maxCodeColumns limits the lines of code.
const maxCodeColumns = 120

// checkCodeWidth returns the lines of code that are too wide. A line that is too wide because of
// one long string or link is allowed.
func checkCodeWidth(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		for _, f := range p.production() {
			literals := stringLines(f)
			for i, line := range f.lines {
				if n := columns(line); n > maxCodeColumns+literals[i+1] {
					bad = append(bad, fmt.Sprintf("%s:%d: %d columns, want at most %d", f.path, i+1, n, maxCodeColumns))
				}
			}
		}
	}
	return bad
}

// stringLines returns for each line of f the length of its longest string, if that is long.
func stringLines(f *sourceFile) map[int]int {
	length := map[int]int{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			start, end := f.fset.Position(lit.Pos()).Line, f.fset.Position(lit.End()).Line
			for line := start; line <= end; line++ {
				size := columns(lit.Value)
				if end > start {
					size = 1 << 20 // a raw string of several lines
				}
				if size > 60 {
					length[line] = max(length[line], size)
				}
			}
		}
		return true
	})
	return length
}
