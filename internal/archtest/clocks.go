package archtest

import "go/ast"

// monotonic are the packages that measure time and tell nobody what time it is.
var monotonic = []string{"watchserver", "transport", "transport/*", "client", "internal/history", "informer", "relay"}

// wallClock are the methods of time.Time whose result has lost the reading of the monotonic clock.
var wallClock = map[string]bool{"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true}

// checkClocks returns the places where a time loses its monotonic reading (package time, "Monotonic Clocks"): what is measured from there
// jumps with the clock on the wall, so that streams end early, or late, or never. A time.Unix of the far past is for deadlines.
func checkClocks(pkgs []*sourcePackage) []string {
	var bad []string
	for _, p := range pkgs {
		if !matchAny(monotonic, p.path) {
			continue
		}
		for _, f := range p.production() {
			clock := importName(f, "time")
			if clock == "" {
				continue
			}
			eachCall(f.ast, func(call *ast.CallExpr) {
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !wallClock[sel.Sel.Name] || isName(sel, clock, "Unix") {
					return
				}
				bad = append(bad, f.at(call.Pos())+": "+sel.Sel.Name+" takes the clock on the wall: keep the time.Time")
			})
		}
	}
	return bad
}
