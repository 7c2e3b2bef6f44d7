package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// maxLines is where a file has become two.
const maxLines = 600

// checkSize returns the files that nobody reads in one sitting; tables of tests may be long.
func checkSize(pkgs []*sourcePackage) []string {
	var bad []string
	for _, p := range pkgs {
		for _, f := range p.production() {
			if f.lines > maxLines {
				bad = append(bad, fmt.Sprintf("%s: %d lines, want at most %d: split it by subject", f.path, f.lines, maxLines))
			}
		}
	}
	return bad
}

var promise = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// checkPromises returns the comments that promise work: it is done now, or it is an issue.
func checkPromises(pkgs []*sourcePackage) []string {
	var bad []string
	for _, f := range allFiles(pkgs) {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if word := promise.FindString(c.Text); word != "" {
					bad = append(bad, fmt.Sprintf("%s: %s: do it, or open an issue", f.at(c.Pos()), word))
				}
			}
		}
	}
	return bad
}

// checkSleeps returns the calls of time.Sleep that wait in real time: whoever sleeps either waits too long or not long enough. Programs
// and benchmarks may. In a bubble of testing/synctest time is not real: there a sleep is a statement about the clock.
func checkSleeps(pkgs []*sourcePackage) []string {
	var bad []string
	for _, p := range pkgs {
		if _, ok := match("cmd/...", p.path); ok {
			continue
		}
		if _, ok := match("benchmarks/...", p.path); ok {
			continue
		}
		named := bubbleFuncs(p)
		for _, f := range p.files {
			bubbles := bubbleRanges(f, named)
			inspectCalls(f, "time", func(sel *ast.SelectorExpr) {
				if sel.Sel.Name == "Sleep" && !within(bubbles, sel.Pos()) {
					bad = append(bad, f.at(sel.Pos())+": time.Sleep outside of a synctest bubble: wait for a signal or a channel")
				}
			})
		}
	}
	return bad
}

// A span is a stretch of a file.
type span struct{ from, to token.Pos }

func within(spans []span, pos token.Pos) bool {
	for _, s := range spans {
		if s.from <= pos && pos < s.to {
			return true
		}
	}
	return false
}

// bubbleFuncs returns the names of the package's functions that are run by synctest.Test.
func bubbleFuncs(p *sourcePackage) map[string]bool {
	names := map[string]bool{}
	for _, f := range p.files {
		for _, arg := range bubbleArgs(f) {
			if id, ok := arg.(*ast.Ident); ok {
				names[id.Name] = true
			}
		}
	}
	return names
}

// bubbleRanges returns the pieces of f that run in a bubble: function literals given to synctest.Test, and the functions named.
func bubbleRanges(f *sourceFile, named map[string]bool) []span {
	var spans []span
	for _, arg := range bubbleArgs(f) {
		if lit, ok := arg.(*ast.FuncLit); ok {
			spans = append(spans, span{lit.Pos(), lit.End()})
		}
	}
	for _, decl := range f.ast.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && named[d.Name.Name] {
			spans = append(spans, span{d.Pos(), d.End()})
		}
	}
	return spans
}

// bubbleArgs returns what f gives to synctest.Test to run.
func bubbleArgs(f *sourceFile) []ast.Expr {
	name := importName(f, "testing/synctest")
	var args []ast.Expr
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 && isSelector(call.Fun, name, "Test") {
			args = append(args, call.Args[1])
		}
		return true
	})
	return args
}

// inspectCalls calls visit for everything that f names of the package with the path target, called or not.
func inspectCalls(f *sourceFile, target string, visit func(*ast.SelectorExpr)) {
	name := importName(f, target)
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && isSelector(sel, name, sel.Sel.Name) {
			visit(sel)
		}
		return true
	})
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || pkg == "" || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// importName returns the name under which f imports target; empty: it doesn't.
func importName(f *sourceFile, target string) string {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != `"`+target+`"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return target[strings.LastIndex(target, "/")+1:]
	}
	return ""
}

func allFiles(pkgs []*sourcePackage) []*sourceFile {
	var files []*sourceFile
	for _, p := range pkgs {
		files = append(files, p.files...)
	}
	return files
}
