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
		says := strings.ReplaceAll(c.Says, "|", `\|`)
		if c.Elsewhere != "" {
			says += " — *" + c.Elsewhere + "*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c.ID, c.Level.Word(), c.Subject.Word(), c.On, c.Lane, says)
	}
	return b.String() + "\n"
}

// TestDocsOfTheProtocolNameCases says that every rule of docs/protocol.md that names a case has it.
func TestDocsOfTheProtocolNameCases(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(docs, "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	known, groups := map[string]bool{}, map[string]bool{}
	for _, c := range conformance.List() {
		known[c.ID], groups[c.Group()] = true, true
	}
	named := 0
	for _, m := range regexp.MustCompile("`([a-z0-9]+)/([a-z0-9-]+)`").FindAllStringSubmatch(string(data), -1) {
		id := m[1] + "/" + m[2]
		switch {
		case known[id]:
			named++
		case m[1] != "application" && m[1] != "text": // media types
			t.Errorf("docs/protocol.md names %s, and there is no such case (group known: %v)", id, groups[m[1]])
		}
	}
	if named < 50 {
		t.Errorf("docs/protocol.md names %d cases, want its rules to be covered", named)
	}
}
