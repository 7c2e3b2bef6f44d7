package cases

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestCases runs every case on every variant of the transports that its rule names: TestCases/handshake/accept-q/ws-gorilla. A run
// without a filter fails where one was left out.
func TestCases(t *testing.T) {
	ran := map[string]bool{}
	for _, r := range rules {
		if r.test == nil {
			continue
		}
		t.Run(r.id, func(t *testing.T) {
			for _, v := range r.variants() {
				for _, lane := range r.lane {
					name := v.name
					if lane == 'f' {
						name += "/fake"
					}
					t.Run(name, func(t *testing.T) {
						defer func() { ran[r.id+"/"+name] = !t.Skipped() }()
						run(t, r, v, lane == 'f')
					})
				}
			}
		})
	}
	if isFiltered() {
		return
	}
	for _, r := range rules {
		for _, v := range r.variants() {
			if r.test != nil && !ran[r.id+"/"+v.name] && !ran[r.id+"/"+v.name+"/fake"] {
				t.Errorf("%s was not run on %s", r.id, v.name)
			}
		}
	}
}

func run(t *testing.T, r rule, v variant, fake bool) {
	if !fake {
		r.test(newEnv(t, v, r.with, false))
		return
	}
	synctest.Test(t, func(t *testing.T) { r.test(newEnv(t, v, r.with, true)) })
}

// variants returns those of the transports that r is about.
func (r rule) variants() []variant {
	return slices.DeleteFunc(slices.Clone(variants), func(v variant) bool {
		return !slices.Contains(strings.Fields(r.on), v.on)
	})
}

func isFiltered() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return true
		}
	}
	return false
}

// groups are how many rules of level M each group of the catalogue has; one that is dropped by mistake shows here.
var groups = map[string]int{"handshake": 22, "resume": 18, "select": 9, "error": 9}

func TestEveryRuleHasATestOrAReason(t *testing.T) {
	seen, must := map[string]bool{}, map[string]int{}
	well := regexp.MustCompile(`^[a-z]+/[a-z0-9-]+$`)
	for _, r := range rules {
		if seen[r.id] || !well.MatchString(r.id) {
			t.Errorf("%s: the id comes twice or is none", r.id)
		}
		seen[r.id] = true
		if len(r.variants()) == 0 || strings.Trim(r.lane, "rf") != "" || r.lane == "" || r.says == "" || len(r.level) != 1 {
			t.Errorf("%s: the rule is not whole: %+v", r.id, r)
		}
		group, _, _ := strings.Cut(r.id, "/")
		if r.level == "M" {
			must[group]++
		}
		if (r.test == nil) == (r.elsewhere == "") {
			t.Errorf("%s: want a test here, or a word on where it is", r.id)
		}
		checkElsewhere(t, r)
	}
	for group, want := range groups {
		if must[group] != want {
			t.Errorf("%s: got %d rules of level M, want %d", group, must[group], want)
		}
	}
}

var livesIn = regexp.MustCompile(`^lives in (\S+) (Test\w+)$`)

// checkElsewhere holds what a rule without a test here says against the source.
func checkElsewhere(t *testing.T, r rule) {
	t.Helper()
	if r.elsewhere == "" || strings.HasPrefix(r.elsewhere, "needs ") {
		return
	}
	m := livesIn.FindStringSubmatch(r.elsewhere)
	if m == nil {
		t.Errorf("%s: %q: want \"needs …\" or \"lives in PACKAGE TestName\"", r.id, r.elsewhere)
		return
	}
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(m[1]), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == m[2] {
				return
			}
		}
	}
	t.Errorf("%s: there is no %s in %s", r.id, m[2], m[1])
}
