package conformance_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/conformance"
)

var docs = filepath.Join("..", "docs")

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
