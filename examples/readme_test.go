package examples

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The README must show the programs exactly as they are here, without their imports.
func TestReadmeShowsTheExamples(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- (examples/\\S+) -->\n```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 2 {
		t.Fatalf("the README shows %d examples, want 2: the server and the client", len(blocks))
	}
	for _, block := range blocks {
		source, err := os.ReadFile("../" + block[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, code, _ := strings.Cut(string(source), "\n)\n\n"); code != block[2] {
			t.Errorf("the README's copy of %s differs from the file:\n%s", block[1], block[2])
		}
	}
}
