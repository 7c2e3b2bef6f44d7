// Command lint runs the analyzers of go vet and of staticcheck over packages and their tests, in
// one pass, because loading and type-checking takes most of the time of either.
//
// It analyzes no other packages. staticcheck itself also analyzes all dependencies, which takes
// seven times as long and adds only the uses of deprecated names. Only make long-analyze does that.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/appends"
	"golang.org/x/tools/go/analysis/passes/asmdecl"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/cgocall"
	"golang.org/x/tools/go/analysis/passes/composite"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/defers"
	"golang.org/x/tools/go/analysis/passes/directive"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/framepointer"
	"golang.org/x/tools/go/analysis/passes/hostport"
	"golang.org/x/tools/go/analysis/passes/httpresponse"
	"golang.org/x/tools/go/analysis/passes/ifaceassert"
	"golang.org/x/tools/go/analysis/passes/loopclosure"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/sigchanyzer"
	"golang.org/x/tools/go/analysis/passes/slog"
	"golang.org/x/tools/go/analysis/passes/stdmethods"
	"golang.org/x/tools/go/analysis/passes/stdversion"
	"golang.org/x/tools/go/analysis/passes/stringintconv"
	"golang.org/x/tools/go/analysis/passes/structtag"
	"golang.org/x/tools/go/analysis/passes/testinggoroutine"
	"golang.org/x/tools/go/analysis/passes/tests"
	"golang.org/x/tools/go/analysis/passes/timeformat"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/analysis/passes/waitgroup"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
)

// vet holds the analyzers of go vet.
var vet = []*analysis.Analyzer{
	appends.Analyzer, asmdecl.Analyzer, assign.Analyzer, atomic.Analyzer, bools.Analyzer, buildtag.Analyzer,
	cgocall.Analyzer, composite.Analyzer, copylock.Analyzer, defers.Analyzer, directive.Analyzer,
	errorsas.Analyzer, framepointer.Analyzer, hostport.Analyzer, httpresponse.Analyzer, ifaceassert.Analyzer,
	loopclosure.Analyzer, lostcancel.Analyzer, nilfunc.Analyzer, printf.Analyzer, shift.Analyzer,
	sigchanyzer.Analyzer, slog.Analyzer, stdmethods.Analyzer, stdversion.Analyzer, stringintconv.Analyzer,
	structtag.Analyzer, testinggoroutine.Analyzer, tests.Analyzer, timeformat.Analyzer, unmarshal.Analyzer,
	unreachable.Analyzer, unsafeptr.Analyzer, unusedresult.Analyzer, waitgroup.Analyzer,
}

func main() {
	findings, err := lint(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// lint analyzes the packages that match patterns and returns what the analyzers found, sorted.
func lint(patterns []string) ([]string, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode:  packages.LoadSyntax | packages.NeedForTest | packages.NeedModule,
		Tests: true,
		// The go command starts one compiler for each processor. Each compiler uses one thread,
		// because with more threads the whole run takes a tenth more time.
		Env:        append(os.Environ(), "GOMAXPROCS=1"),
		BuildFlags: []string{fmt.Sprint("-p=", runtime.GOMAXPROCS(0))},
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(pkgs) > 0 {
		return nil, errors.New("lint: the packages have errors")
	}
	own := make(map[*packages.Package]bool)
	for _, p := range pkgs {
		own[p] = true
	}
	for _, p := range pkgs {
		maps.DeleteFunc(p.Imports, func(_ string, p *packages.Package) bool { return !own[p] })
	}
	graph, err := checker.Analyze(analyzers(), withTests(pkgs), nil)
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, fmt.Errorf("%v: %w", action, action.Err)
		}
		for _, d := range action.Diagnostics {
			findings = append(
				findings, fmt.Sprintf("%v: %s (%s)", action.Package.Fset.Position(d.Pos), d.Message,
					action.Analyzer.Name))
		}
	}
	slices.Sort(findings)
	return findings, nil
}

// analyzers returns the analyzers of vet and the default ones of staticcheck.
func analyzers() []*analysis.Analyzer {
	all := slices.Clone(vet)
	for _, a := range slices.Concat(simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers) {
		if !a.Doc.NonDefault {
			all = append(all, a.Analyzer)
		}
	}
	return all
}

// withTests returns pkgs without the generated main packages of tests. If pkgs has a package both
// with and without its tests, withTests returns only the variant with its tests.
func withTests(pkgs []*packages.Package) []*packages.Package {
	tested := make(map[string]bool)
	for _, p := range pkgs {
		tested[p.PkgPath] = tested[p.PkgPath] || p.ForTest == p.PkgPath
	}
	return slices.DeleteFunc(slices.Clone(pkgs), func(p *packages.Package) bool {
		return strings.HasSuffix(p.ID, ".test") || tested[p.PkgPath] && p.ForTest != p.PkgPath
	})
}
