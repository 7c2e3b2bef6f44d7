package cases

import (
	"cmp"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/racetest"
)

var (
	seed        = flag.Uint64("seed", 0, "seed of the random cases; if 0, each draws its own")
	allVariants = flag.Bool("all", false, "run every variant under the race detector and with -short, too")
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestCases runs every case in every variant of its transports, as subtests such as
// TestCases/handshake/accept-q/ws-gorilla. A run without a filter also fails if a variant was left
// out, or if a case does not declare exactly the abilities that it uses. Under the race detector or
// with -short, each case runs only in the variants that reducedVariants returns, unless -all is
// set.
func TestCases(t *testing.T) {
	ran, used := map[string]bool{}, map[string]harness.Ability{}
	targets, reduced := map[string]harness.Target{}, reducedVariants()
	for _, c := range All() {
		target := reference.New("listwatch", reference.Interceptors{})
		target.Seed = *seed
		if (racetest.Enabled || testing.Short()) && !*allVariants {
			target.Variants = reduced[c.ID]
		}
		targets[c.ID] = target
		t.Run(c.ID, func(t *testing.T) {
			runner.TestVariants(t, c, target, func(name string, a harness.Ability) {
				ran[c.ID+"/"+name] = true
				used[c.ID] |= a
			})
		})
	}
	if isFiltered() {
		return
	}
	for _, c := range All() {
		if c.Run == nil {
			continue
		}
		for _, v := range runner.Variants(c, targets[c.ID]) {
			if !ran[c.ID+"/"+v] && !ran[c.ID+"/"+v+"/fake"] {
				t.Errorf("%s was not run on %s", c.ID, v)
			}
		}
		if got := used[c.ID] | setupNeeds(c); got != c.Needs&^undetected {
			t.Errorf("%s uses the abilities %q, but declares %q", c.ID, got, c.Needs)
		}
	}
}

// reducedVariants returns the variants (implementations of a transport) in which each case runs
// under the race detector or with -short. A case for a single transport tests the implementations
// of that transport, so it runs in all of its variants. The rule of any other case does not depend
// on the transport, so the case runs in one variant only: the variant that was chosen for the
// fewest cases of the group so far. In a tie, reducedVariants chooses the variant that the fewest
// cases of the group support. The command make long-variants runs the other variants.
func reducedVariants() map[string][]string {
	chosen, runs, fits := map[string][]string{}, map[string]int{}, map[string]int{}
	for _, c := range All() {
		chosen[c.ID] = runner.Variants(c, reference.New("", reference.Interceptors{}))
		if !isForOneTransport(c) {
			for _, v := range chosen[c.ID] {
				fits[c.Group()+v]++
			}
		}
	}
	for _, c := range All() {
		if all := chosen[c.ID]; len(all) > 0 && !isForOneTransport(c) {
			v := slices.MinFunc(all, func(a, b string) int {
				a, b = c.Group()+a, c.Group()+b
				return cmp.Or(runs[a]-runs[b], fits[a]-fits[b])
			})
			runs[c.Group()+v]++
			chosen[c.ID] = []string{v}
		}
	}
	return chosen
}

func isForOneTransport(c harness.Case) bool { return len(strings.Fields(c.AppliesTo())) == 1 }

func TestReducedVariantsCoverEachGroup(t *testing.T) {
	cases, covered, want := map[string]int{}, map[string]map[string]bool{}, map[string]map[string]bool{}
	reduced := reducedVariants()
	for _, c := range All() {
		all := runner.Variants(c, reference.New("", reference.Interceptors{}))
		switch got := reduced[c.ID]; {
		case isForOneTransport(c):
			if !slices.Equal(got, all) {
				t.Errorf("%s: got the variants %v, want %v", c.ID, got, all)
			}
			continue
		case len(got) == 0 && len(all) > 0:
			t.Errorf("%s runs in no variant", c.ID)
		}
		if want[c.Group()] == nil {
			want[c.Group()], covered[c.Group()] = map[string]bool{}, map[string]bool{}
		}
		for _, v := range all {
			want[c.Group()][v] = true
		}
		for _, v := range reduced[c.ID] {
			covered[c.Group()][v] = true
			cases[c.Group()]++
		}
	}
	for group, variants := range want {
		if got, least := len(covered[group]), min(len(variants), cases[group]); got < least {
			t.Errorf("group %s runs in %d variants, want %d", group, got, least)
		}
	}
}

// undetected lists the abilities whose use TestCases cannot detect.
const undetected = harness.SoleWriter | harness.ConsecutiveVersions | harness.KubernetesPaths | harness.Namespaces |
	harness.FieldSelectors

// setupNeeds returns the abilities that the setup of c needs.
func setupNeeds(c harness.Case) harness.Ability {
	switch {
	case reflect.ValueOf(c.Setup).IsZero():
		return 0
	case reflect.DeepEqual(c.Setup, harness.BookmarksOften):
		return harness.FrequentBookmarks
	case reflect.DeepEqual(c.Setup, harness.Setup{TTL: c.Setup.TTL}):
		return harness.Expires
	}
	return harness.Configurable
}

func isFiltered() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return true
		}
	}
	return false
}

// mustRules is the number of rules of strength Must in each group. It detects rules that were
// removed by mistake.
var mustRules = map[string]int{
	"handshake": 23, "resume": 18, "select": 9, "error": 9, "event": 8, "bookmark": 7, "initial": 14, "timeout": 3,
	"slow": 5, "drop": 7, "drain": 3, "framing": 25, "order": 14, "tls": 6, "auth": 2, "cors": 5, "comp": 9, "conc": 4,
	"large": 3, "unicode": 2, "limit": 14,
}

func TestEveryRuleHasATestOrAReason(t *testing.T) {
	seen, must := map[string]bool{}, map[string]int{}
	validID := regexp.MustCompile(`^[a-z]+/[a-zA-Z0-9-]+$`)
	for _, c := range All() {
		if seen[c.ID] || !validID.MatchString(c.ID) {
			t.Errorf("%s: the ID is invalid or used twice", c.ID)
		}
		seen[c.ID] = true
		if len(runner.Variants(c, reference.New("", reference.Interceptors{}))) == 0 || c.Rule == "" ||
			!strings.Contains("SCE", string(c.Side())) {
			t.Errorf("%s: the declaration is incomplete: %+v", c.ID, c)
		}
		if c.Strength == harness.Must {
			must[c.Group()]++
		}
		if (c.Run == nil) == (c.CoveredBy == "") {
			t.Errorf("%s: want either Run or CoveredBy", c.ID)
		}
		checkCoveredBy(t, c)
	}
	for group, want := range mustRules {
		if must[group] != want {
			t.Errorf("%s: got %d rules of strength Must, want %d", group, must[group], want)
		}
	}
}

var livesIn = regexp.MustCompile(`^lives in (\S+) ((?:Test|Fuzz)\w+)$`)

// checkCoveredBy checks that c.CoveredBy names an existing test, or says what the rule needs.
func checkCoveredBy(t *testing.T, c harness.Case) {
	t.Helper()
	if c.CoveredBy == "" || strings.HasPrefix(c.CoveredBy, "needs ") {
		return
	}
	m := livesIn.FindStringSubmatch(c.CoveredBy)
	if m == nil {
		t.Errorf("%s: got CoveredBy %q, want \"needs ...\" or \"lives in PACKAGE TestName\"", c.ID, c.CoveredBy)
		return
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(m[1]), "*_test.go"))
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
	t.Errorf("%s: test %s does not exist in %s", c.ID, m[2], m[1])
}
