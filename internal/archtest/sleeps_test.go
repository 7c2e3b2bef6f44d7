package archtest

import (
	"go/ast"
	"go/token"
	"strings"
)

// checkSleeps returns the uses of time.Sleep that wait in real time: such a sleep is either too
// long or too short. Programs and benchmarks may sleep. So may code in a bubble of
// testing/synctest, where a sleep only advances the fake clock, and a test kit, which runs the
// bubbles of other packages.
func checkSleeps(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		if matchAny([]string{"cmd/...", "benchmarks/..."}, p.path) || isTestKit(p) {
			continue
		}
		bubbles := bubblesOf(p)
		for _, f := range p.files {
			clock := importName(f, "time")
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if isName(n, clock, "Sleep") && !within(bubbles, n.Pos()) {
					bad = append(bad, f.at(n.Pos())+
						": time.Sleep outside a synctest bubble: wait for a signal or a channel")
				}
				return true
			})
		}
	}
	return bad
}

// isTestKit reports whether p runs synctest bubbles for the tests of other packages.
func isTestKit(p *sourcePackage) bool {
	for _, f := range p.production() {
		if importName(f, "testing/synctest") != "" {
			return true
		}
	}
	return false
}

// bubblesOf returns the functions of p that run in bubbles: the function literals and the named
// functions that are arguments of synctest.Test, or of a function that runnersOf returns.
func bubblesOf(p *sourcePackage) []ast.Node {
	runners := runnersOf(p)
	var bubbles []ast.Node
	named := map[string]bool{}
	for _, f := range p.files {
		synctest := importName(f, "testing/synctest")
		eachCall(f.ast, func(call *ast.CallExpr) {
			if !runners[callee(call)] && !isName(call.Fun, synctest, "Test") {
				return
			}
			for _, arg := range call.Args {
				switch arg := arg.(type) {
				case *ast.FuncLit:
					bubbles = append(bubbles, arg)
				case *ast.Ident:
					named[arg.Name] = true
				}
			}
		})
	}
	eachFunc(p, func(_ *sourceFile, d *ast.FuncDecl) {
		if named[d.Name.Name] {
			bubbles = append(bubbles, d)
		}
	})
	return bubbles
}

// runnersOf returns the names of p's functions that call synctest.Test, or that pass a function
// on to such a function.
func runnersOf(p *sourcePackage) map[string]bool {
	runners := map[string]bool{}
	for found := -1; found < len(runners); {
		found = len(runners)
		eachFunc(p, func(f *sourceFile, d *ast.FuncDecl) {
			synctest := importName(f, "testing/synctest")
			eachCall(d, func(call *ast.CallExpr) {
				if isName(call.Fun, synctest, "Test") || runners[callee(call)] && takesFunc(d) {
					runners[d.Name.Name] = true
				}
			})
		})
	}
	return runners
}

// takesFunc reports whether d has a parameter of a function type.
func takesFunc(d *ast.FuncDecl) bool {
	for _, field := range d.Type.Params.List {
		if _, ok := field.Type.(*ast.FuncType); ok {
			return true
		}
	}
	return false
}

// eachCall calls visit for each call in n.
func eachCall(n ast.Node, visit func(*ast.CallExpr)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			visit(call)
		}
		return true
	})
}

// eachFunc calls visit for each function of p that is not a method.
func eachFunc(p *sourcePackage, visit func(*sourceFile, *ast.FuncDecl)) {
	for _, f := range p.files {
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil {
				visit(f, d)
			}
		}
	}
}

// callee returns the name of the function in a call such as f(x), and "" for other calls, such as
// pkg.F(x).
func callee(call *ast.CallExpr) string {
	id, ok := call.Fun.(*ast.Ident)
	if !ok {
		return ""
	}
	return id.Name
}

func within(nodes []ast.Node, pos token.Pos) bool {
	for _, n := range nodes {
		if n.Pos() <= pos && pos < n.End() {
			return true
		}
	}
	return false
}

// isName reports whether n is pkg.name. An empty pkg means that the file does not import the
// package; isName then reports false.
func isName(n ast.Node, pkg, name string) bool {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok || pkg == "" || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// importName returns the name under which f imports target, or "" if it does not import it.
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
