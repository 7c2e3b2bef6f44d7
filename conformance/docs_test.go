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

var update = flag.Bool("update", false, "write the table of cases into docs/conformance.md")

var (
	docs = filepath.Join("..", "docs")
	// casesTable is what lies between the marks in docs/conformance.md.
	casesTable = regexp.MustCompile(`(?s)(<!-- cases: [^\n]*-->\n).*(<!-- /cases -->)`)
)

// TestDocsHaveEveryCase holds the table in docs/conformance.md against the registry; with -update it writes it.
func TestDocsHaveEveryCase(t *testing.T) {
	file := filepath.Join(docs, "conformance.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !casesTable.Match(data) {
		t.Fatalf("%s has no marks around its table", file)
	}
	want := casesTable.ReplaceAllString(string(data), "${1}"+strings.ReplaceAll(table(), "$", "$$")+"${2}")
	if want == string(data) {
		return
	}
	if !*update {
		t.Fatalf("%s is not in step with the cases; go test ./conformance -run Docs -update writes it (-want +got):\n%s", file, cmp.Diff(want, string(data)))
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table is the cases in Markdown.
func table() string {
	var b strings.Builder
	group := ""
	for _, c := range conformance.List() {
		if c.Group() != group {
			group = c.Group()
			fmt.Fprintf(&b, "\n### %s\n\n| case | | about | over | lane | rule |\n|---|---|---|---|---|---|\n", group)
		}
		says := strings.ReplaceAll(c.Rule, "|", `\|`)
		if c.CoveredBy != "" {
			says += " — *" + c.CoveredBy + "*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c.ID, c.Level.Name(), c.Subject.Name(), c.Transports, c.Mode, says)
	}
	return b.String() + "\n"
}

// A rule is a paragraph, an item of a list or a row of a table in docs/protocol.md.
type rule struct{ section, text string }

// inProtocol are all rules, but for the introduction and the section that only compares.
func inProtocol(t *testing.T) (all []rule) {
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
		if section == "" && !caseID.MatchString(block) || strings.HasPrefix(section, "Where we differ") {
			continue
		}
		for i, line := range strings.Split(strings.TrimSpace(block), "\n") {
			row := strings.HasPrefix(line, "|")
			switch {
			case row && i < 2: // the head of a table
			case i == 0 || row || strings.HasPrefix(line, "- "):
				all = append(all, rule{section, line})
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
	// ownTest names a test of a package, for what is no rule of the protocol but of that package.
	ownTest = regexp.MustCompile("`([a-z0-9/]+) (Test[A-Za-z0-9]+)`")
)

// TestEveryRuleOfTheProtocolHasACaseAndEveryCaseARule holds docs/protocol.md and the registry against each other, both ways.
func TestEveryRuleOfTheProtocolHasACaseAndEveryCaseARule(t *testing.T) {
	ruled := map[string]bool{}
	for _, c := range conformance.List() {
		ruled[c.ID] = false
	}
	rules := inProtocol(t)
	for _, r := range rules {
		proved := false
		for _, m := range caseID.FindAllStringSubmatch(r.text, -1) {
			if _, known := ruled[m[1]]; known {
				ruled[m[1]], proved = true, true
			} else if !mediaType.MatchString(m[1]) {
				t.Errorf("docs/protocol.md, %s: there is no case %s", r.section, m[1])
			}
		}
		for _, m := range ownTest.FindAllStringSubmatch(r.text, -1) {
			proved = true
			if !hasTest(t, m[1], m[2]) {
				t.Errorf("docs/protocol.md, %s: there is no %s in %s", r.section, m[2], m[1])
			}
		}
		if !proved {
			t.Errorf("docs/protocol.md, %s: no case shows that this is so:\n%s", r.section, r.text)
		}
	}
	for _, c := range conformance.List() {
		if !ruled[c.ID] {
			t.Errorf("docs/protocol.md has no rule that names %s: %s", c.ID, c.Rule)
		}
	}
	if len(rules) < 60 {
		t.Errorf("docs/protocol.md has %d rules: is it read as it is written?", len(rules))
	}
}

// hasTest reports whether a package of the module has a test.
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
