package archtest

import "go/ast"

// monotonic lists the packages that measure durations and never need the time of day.
var monotonic = []string{
	"watchserver", "transport", "transport/*", "transport/internal/*", "transport/websocket/...",
	"client", "internal/history", "informer", "relay",
}

// wallClock lists the methods of time.Time whose results have lost the monotonic clock reading.
var wallClock = map[string]bool{"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true}

// checkClocks returns the places where a time loses its monotonic clock reading (package time,
// "Monotonic Clocks"). A duration measured from such a time changes when the system clock is set,
// so streams would end early, late or never. time.Unix is allowed, because it is only used for
// deadlines in the far past.
func checkClocks(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
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
				bad = append(bad, f.at(call.Pos())+": "+sel.Sel.Name+
					" drops the monotonic clock reading: keep the time.Time")
			})
		}
	}
	return bad
}
