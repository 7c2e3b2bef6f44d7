package examples

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The README must show the programs exactly as they are here, without their imports.
func TestReadmeShowsTheExamples(t *testing.T) {
	blocks := exampleBlocks(t, "../README.md")
	if len(blocks) != 2 {
		t.Fatalf("the README shows %d examples, want 2: the server and the client", len(blocks))
	}
	for _, b := range blocks {
		if _, code, _ := strings.Cut(b.source, "\n)\n\n"); code != b.code {
			t.Errorf("the README's copy of %s differs from the file:\n%s", b.file, b.code)
		}
	}
}

// Each part of an example that a page shows must be in the file of the example.
func TestPagesShowPartsOfExamples(t *testing.T) {
	for _, page := range []string{"docs/controllers.md", "docs/users.md"} {
		blocks := exampleBlocks(t, "../"+page)
		if len(blocks) == 0 {
			t.Errorf("%s shows no example", page)
		}
		for _, b := range blocks {
			if !strings.Contains(b.source, b.code) {
				t.Errorf("%s shows code that %s does not have:\n%s", page, b.file, b.code)
			}
		}
	}
}

// A block is Go code in a page. In the page, a comment with the name of an example precedes the
// code.
type block struct{ file, code, source string }

// exampleBlocks returns the blocks in a page, with the source code of their files.
func exampleBlocks(t *testing.T, page string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)<!-- (examples/\\S+) -->\n```go\n(.*?)```")
	for _, m := range example.FindAllStringSubmatch(string(text), -1) {
		source, err := os.ReadFile("../" + m[1])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, block{m[1], m[2], string(source)})
	}
	return all
}
