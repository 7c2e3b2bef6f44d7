package informer_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")

func TestDocumentedTestsExist(t *testing.T) {
	for page, rows := range map[string]int{"informer.md": 20, "controllers.md": 10} {
		doc, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		named := testName.FindAllStringSubmatch(string(doc), -1)
		if len(named) < rows {
			t.Errorf("docs/%s names %d tests, want at least one for each row", page, len(named))
		}
		for _, n := range named {
			if pkg, name := n[1], n[2]; !strings.Contains(testSource(t, pkg), "\nfunc "+name+"(") {
				t.Errorf("docs/%s names %s.%s, but no such test exists", page, pkg, name)
			}
		}
	}
}

// testSource returns the source code of all tests of a package.
func testSource(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob("../" + pkg + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
