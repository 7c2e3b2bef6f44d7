package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch/conformance"
)

var update = flag.Bool("update", false, "write the list of cases to docs/conformance-cases.md")

var (
	docs = filepath.Join("..", "docs")
	// casesTable matches the generated part of docs/conformance-cases.md.
	casesTable = regexp.MustCompile(`(?s)(<!-- cases: [^\n]*-->\n).*(<!-- /cases -->)`)
)

// With the flag -update, this test writes the list of cases to the file instead of comparing it
// with the file.
func TestDocsListEveryCase(t *testing.T) {
	file := filepath.Join(docs, "conformance-cases.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !casesTable.Match(data) {
		t.Fatalf("%s lacks the markers around the generated list", file)
	}
	want := casesTable.ReplaceAllString(string(data), "${1}"+strings.ReplaceAll(caseTable(t), "$", "$$")+"${2}")
	if want == string(data) {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date; run go test ./conformance -run Docs -update (-want +got):\n%s", file,
			cmp.Diff(want, string(data)))
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// caseTable returns the list of cases in Markdown.
func caseTable(t *testing.T) string {
	t.Helper()
	set, err := conformance.LoadSet("")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	group := ""
	for _, c := range conformance.List() {
		if c.Group() != group {
			group = c.Group()
			fmt.Fprintf(&b,
				"\n## %s\n\n| case | strength | level | subject | transports | mode | rule |\n"+
					"|---|---|---|---|---|---|---|\n", group)
		}
		rule := strings.ReplaceAll(c.Rule, "|", `\|`)
		if c.CoveredBy != "" {
			rule += " (" + strings.Replace(c.CoveredBy, "lives in", "covered by", 1) + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", c.ID, c.Strength.String(), set.Describe(c.ID), c.Side(),
			c.AppliesTo(), c.Mode.Letters(), rule)
	}
	return b.String() + "\n"
}

// A protocolRule is a paragraph, a list item or a table row in docs/protocol.md.
type protocolRule struct{ section, text string }

// protocolRules returns all rules outside of the introduction and the comparison with Kubernetes.
func protocolRules(t *testing.T) (all []protocolRule) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(docs, "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for block := range strings.SplitSeq(string(data), "\n\n") {
		if name, ok := strings.CutPrefix(block, "## "); ok {
			section = strings.TrimSpace(name)
			continue
		}
		if section == "" && !caseID.MatchString(block) || strings.HasPrefix(section, "Differences") {
			continue
		}
		for i, line := range strings.Split(strings.TrimSpace(block), "\n") {
			row := strings.HasPrefix(line, "|")
			switch {
			case row && i < 2: // table header
			case i == 0 || row || strings.HasPrefix(line, "- "):
				all = append(all, protocolRule{section, line})
			default:
				all[len(all)-1].text += "\n" + line
			}
		}
	}
	return all
}

var (
	caseID    = regexp.MustCompile("`([a-z0-9]+/[a-zA-Z0-9-]+)`")
	mediaType = regexp.MustCompile("^(application|text)/")
	// packageTest matches the name of a package and of a test in it. Rules that no case covers name
	// such a test.
	packageTest = regexp.MustCompile("`([a-z0-9/]+) (Test[A-Za-z0-9]+)`")
)

func TestProtocolRulesAndCasesMatch(t *testing.T) {
	documented := map[string]bool{}
	for _, c := range conformance.List() {
		documented[c.ID] = false
	}
	rules := protocolRules(t)
	for _, r := range rules {
		covered := false
		for _, m := range caseID.FindAllStringSubmatch(r.text, -1) {
			if _, exists := documented[m[1]]; exists {
				documented[m[1]], covered = true, true
			} else if !mediaType.MatchString(m[1]) {
				t.Errorf("docs/protocol.md, section %q: case %s does not exist", r.section, m[1])
			}
		}
		for _, m := range packageTest.FindAllStringSubmatch(r.text, -1) {
			covered = true
			if !hasTest(t, m[1], m[2]) {
				t.Errorf("docs/protocol.md, section %q: test %s does not exist in %s", r.section, m[2], m[1])
			}
		}
		if !covered {
			t.Errorf("docs/protocol.md, section %q: this rule names no case:\n%s", r.section, r.text)
		}
	}
	for _, c := range conformance.List() {
		if !documented[c.ID] {
			t.Errorf("docs/protocol.md does not name case %s: %s", c.ID, c.Rule)
		}
	}
	if len(rules) < 60 {
		t.Errorf("found only %d rules in docs/protocol.md, want at least 60", len(rules))
	}
}

// hasTest reports whether a package of this repository has a test with that name.
func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
