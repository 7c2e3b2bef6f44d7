package archtest

import (
	"flag"
	"go/ast"
	"testing"
)

var edges = flag.String("edges", "", "print the uses that run upwards in a package")

var figures = flag.Bool("figures", false, "print the figures of each package")

func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("prints figures; it checks nothing")
	}
	r, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.packages {
		uses := fileUses(p.production())
		one := &repository{packages: []*sourcePackage{p}}
		lines := 0
		for _, f := range p.production() {
			lines += len(f.lines)
		}
		if lines == 0 {
			continue
		}
		if p.path == *edges {
			for _, u := range upward(uses) {
				t.Log(u)
			}
		}
		large := 0
		eachStruct(one, func(_ *sourceFile, _ string, s *ast.StructType) {
			n := 0
			for _, field := range s.Fields.List {
				n += max(1, len(field.Names))
			}
			if n > maxFields {
				large++
			}
		})
		t.Logf("%-40s lines %5d files %2d upward %2d/%3d large structs %d receivers %d contexts %d wide %d", p.path, lines, len(p.production()),
			len(upward(uses)), len(uses), large, len(checkReceivers(one)), len(checkContextFields(one)), len(checkCodeWidth(one)))
	}
}
