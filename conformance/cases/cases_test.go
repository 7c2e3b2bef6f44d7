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

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestCases runs every case in every way its rule names: TestCases/handshake/accept-q/ws-gorilla. A run without a filter fails where one
// was left out, or where a case does not say what it needs. Under the race detector the ways are those of [racedWays].
func TestCases(t *testing.T) {
	ran, used := map[string]bool{}, map[string]Ability{}
	targets := map[string]Target{}
	for i, c := range All() {
		target := Own("listwatch", Interceptors{})
		if raced {
			target.Variants = c.racedWays(i)
		}
		targets[c.ID] = target
		t.Run(c.ID, func(t *testing.T) {
			c.test(t, target, func(name string, a Ability) {
				ran[c.ID+"/"+name] = true
				used[c.ID] |= a
			})
		})
	}
	if isFiltered() {
		return
	}
	for _, c := range All() {
		if c.run == nil {
			continue
		}
		for _, w := range c.waysOf(targets[c.ID]) {
			if !ran[c.ID+"/"+w.name] && !ran[c.ID+"/"+w.name+"/fake"] {
				t.Errorf("%s was not run on %s", c.ID, w.name)
			}
		}
		if got := used[c.ID] | c.setupNeeds(); got != c.needs&^hidden {
			t.Errorf("%s uses %q, and says that it needs %q", c.ID, got, c.needs)
		}
	}
}

// racedWays returns one way over each transport, in turn, for a case about several of them; all ways, for one about a single transport. What the
// race detector is to look at are the two halves of a way, which meet every group of cases.
func (c Case) racedWays(turn int) []string {
	if len(strings.Fields(c.Transports)) == 1 {
		return Variants()
	}
	byTransport := map[string][]string{}
	for _, w := range ways {
		byTransport[w.on] = append(byTransport[w.on], w.name)
	}
	var chosen []string
	for _, names := range byTransport {
		chosen = append(chosen, names[turn%len(names)])
	}
	return chosen
}

func TestCasesUnderTheRaceDetectorMeetEveryTransportAndGroupsEveryWay(t *testing.T) {
	want, met := map[string]bool{}, map[string]bool{}
	for i, c := range All() {
		target := Own("", Interceptors{})
		all := c.waysOf(target)
		target.Variants = c.racedWays(i)
		some := c.waysOf(target)
		on := func(ways []way) (transports []string) {
			for _, w := range ways {
				transports = append(transports, w.on)
			}
			slices.Sort(transports)
			return slices.Compact(transports)
		}
		if !slices.Equal(on(some), on(all)) {
			t.Errorf("%s: got the transports %v, want %v", c.ID, on(some), on(all))
		}
		for _, w := range all {
			want[c.Group()+" "+w.name] = true
		}
		for _, w := range some {
			met[c.Group()+" "+w.name] = true
		}
	}
	for pair := range want {
		if !met[pair] {
			t.Errorf("%s: they don't meet", pair)
		}
	}
}

// hidden are abilities whose use does not show.
const hidden = SoleWriter | ConsecutiveVersions | KubernetesPaths | Namespaces | FieldSelectors

// setupNeeds is what the setup of c asks for.
func (c Case) setupNeeds() Ability {
	if c.setup != (Setup{}) {
		return Configurable
	}
	return 0
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
var groups = map[string]int{"handshake": 22, "resume": 18, "select": 9, "error": 9, "event": 8, "bookmark": 7, "initial": 14, "timeout": 3, "slow": 5, "drop": 7, "drain": 3, "framing": 25, "order": 14, "tls": 6, "auth": 2, "cors": 5, "comp": 8, "conc": 4, "large": 3, "unicode": 2, "limit": 13}

func TestEveryRuleHasATestOrAReason(t *testing.T) {
	seen, must := map[string]bool{}, map[string]int{}
	well := regexp.MustCompile(`^[a-z]+/[a-zA-Z0-9-]+$`)
	for _, c := range All() {
		if seen[c.ID] || !well.MatchString(c.ID) {
			t.Errorf("%s: the id comes twice or is none", c.ID)
		}
		seen[c.ID] = true
		if len(c.waysOf(Own("", Interceptors{}))) == 0 || strings.Trim(c.Mode, "rfx") != "" || c.Mode == "" || c.Rule == "" ||
			!strings.Contains("MSQI", string(c.Level)) || !strings.Contains("SCE", string(c.Subject)) {
			t.Errorf("%s: the rule is not whole: %+v", c.ID, c)
		}
		if c.Level == Must {
			must[c.Group()]++
		}
		if (c.run == nil) == (c.CoveredBy == "") {
			t.Errorf("%s: want a test here, or a word on where it is", c.ID)
		}
		checkElsewhere(t, c)
	}
	for group, want := range groups {
		if must[group] != want {
			t.Errorf("%s: got %d rules of level M, want %d", group, must[group], want)
		}
	}
}

var livesIn = regexp.MustCompile(`^lives in (\S+) ((?:Test|Fuzz)\w+)$`)

// checkElsewhere holds what a rule without a test here says against the source.
func checkElsewhere(t *testing.T, c Case) {
	t.Helper()
	if c.CoveredBy == "" || strings.HasPrefix(c.CoveredBy, "needs ") {
		return
	}
	m := livesIn.FindStringSubmatch(c.CoveredBy)
	if m == nil {
		t.Errorf("%s: %q: want \"needs …\" or \"lives in PACKAGE TestName\"", c.ID, c.CoveredBy)
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
	t.Errorf("%s: there is no %s in %s", c.ID, m[2], m[1])
}
