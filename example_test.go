package listwatch_test

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
)

// Flag is a watchable type.
type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// A Source that you write yourself makes its objects with NewObject, for example from the rows of a
// table. NewObject takes the JSON, the version of the row, and the values for field selectors.
func ExampleNewObject() {
	row := []byte(`{"metadata": {"name": "dark-mode"}, "enabled": true}`)
	o, err := listwatch.NewObject(row, 7, map[string]string{"enabled": "true"})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(o.Data))

	_, err = listwatch.NewObject(row, 0, nil)
	fmt.Println(err)
	// Output:
	// {"metadata":{"name":"dark-mode","resourceVersion":"7"},"enabled":true}
	// new object: invalid: dark-mode has version 0: versions start at 1
}

// A watch starts with the current state, as Added events, and then returns every change.
func Example() {
	ctx := context.Background()
	flags := memory.New[Flag]()
	if _, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}}); err != nil {
		fmt.Println(err)
	}

	w, err := flags.Watch(ctx, listwatch.Query{})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := listwatch.Key{Name: "dark-mode"}
	if _, err := flags.Update(ctx, key, func(f *Flag) error { f.Enabled = true; return nil }); err != nil {
		fmt.Println(err)
	}
	if _, err := flags.Delete(ctx, key, 0); err != nil {
		fmt.Println(err)
	}

	for event, err := range listwatch.All(ctx, w) {
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println(event.Type, event.Object.Key)
		if event.Type == listwatch.Deleted {
			_ = w.Close() // ends the loop
		}
	}
	// Output:
	// ADDED dark-mode
	// MODIFIED dark-mode
	// DELETED dark-mode
}

func ExampleParseLabelSelector() {
	s, err := listwatch.ParseLabelSelector("tier in (front, edge), !canary")
	fmt.Println(s, err)
	fmt.Println(s.Matches(map[string]string{"tier": "edge"}))
	fmt.Println(s.Matches(map[string]string{"tier": "edge", "canary": "1"}))

	_, err = listwatch.ParseLabelSelector("tier in front")
	fmt.Println(strings.ReplaceAll(err.Error(), ": ", ":\n"))
	// Output:
	// !canary,tier in (edge,front) <nil>
	// true
	// false
	// invalid:
	// unable to parse label selector "tier in front":
	// found "front" at byte 8, expected an opening parenthesis
}

// The code in the package comment starts a server, so the test only parses it.
func TestPackageCommentHasValidGo(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	for line := range strings.Lines(string(source)) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok {
			code = append(code, rest)
		}
	}
	if len(code) == 0 || len(code) > 12 {
		t.Errorf("got %d lines of code, want about ten", len(code))
	}
	body := "package p\nfunc f() {\n" + strings.Join(code, "") + "}\n"
	if _, err := parser.ParseFile(token.NewFileSet(), "doc.go", body, parser.AllErrors); err != nil {
		t.Error(err)
	}
}
