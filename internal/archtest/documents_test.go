package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// checkPackageComments returns the packages that have no package comment, or more than one, which
// godoc would join in the order of the file names. The comment of a library must begin with
// "Package name" (go.dev/doc/comment).
func checkPackageComments(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		files := p.production()
		if len(files) == 0 {
			files = p.files
		}
		var where []string
		for _, f := range files {
			text := f.ast.Doc.Text()
			if text == "" {
				continue
			}
			where = append(where, f.path)
			if name := f.ast.Name.Name; name != "main" && !f.isTest() && !strings.HasPrefix(text, "Package "+name+" ") {
				bad = append(bad, fmt.Sprintf("%s: the package comment must begin \"Package %s \"", f.path, name))
			}
		}
		if len(where) != 1 {
			bad = append(bad, fmt.Sprintf("%s: %d package comments, want one %v", p.path, len(where), where))
		}
	}
	return bad
}

// checkDocumented returns the exported names without a comment. Fields, programs and tests need no
// comments. A comment on a group of constants or variables covers all of them.
func checkDocumented(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		for _, f := range p.production() {
			if f.ast.Name.Name == "main" {
				continue
			}
			for _, decl := range f.ast.Decls {
				for _, name := range undocumented(decl) {
					bad = append(bad, fmt.Sprintf("%s: %s is exported and has no comment", f.at(name.Pos()), name.Name))
				}
			}
		}
	}
	return bad
}

func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverIsExported(d) && d.Doc.Text() == "" {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, spec := range d.Specs {
			names = append(names, undocumentedSpec(d, spec)...)
		}
		return names
	}
	return nil
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		text := s.Doc.Text()
		if !d.Lparen.IsValid() {
			// Without parentheses the parser attaches the comment to the declaration.
			text = d.Doc.Text()
		}
		if text == "" {
			names = append(names, s.Name)
		}
		if i, ok := s.Type.(*ast.InterfaceType); ok {
			names = append(names, undocumentedMethods(i, text)...)
		}
	case *ast.ValueSpec:
		if d.Tok == token.IMPORT || d.Doc.Text()+s.Doc.Text()+s.Comment.Text() != "" {
			return nil
		}
		for _, name := range s.Names {
			if name.IsExported() {
				names = append(names, name)
			}
		}
	}
	return names
}

// undocumentedMethods returns the methods of i without a comment. text is the comment of the
// interface. It also documents the method of an interface that has only one. A method also counts
// as documented if text, or the comment of another method, names it. The methods of a constraint
// need no comments.
func undocumentedMethods(i *ast.InterfaceType, text string) []*ast.Ident {
	var names []*ast.Ident
	if text != "" && i.Methods.NumFields() == 1 || isConstraint(i) {
		return nil
	}
	for _, m := range i.Methods.List {
		text += " " + m.Doc.Text()
	}
	named := strings.FieldsFunc(text, notLetter)
	for _, m := range i.Methods.List {
		if m.Doc.Text()+m.Comment.Text() != "" {
			continue
		}
		for _, name := range m.Names {
			if name.IsExported() && !slices.Contains(named, name.Name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// isConstraint reports whether i has an element that is neither a method nor an interface name.
func isConstraint(i *ast.InterfaceType) bool {
	for _, m := range i.Methods.List {
		switch m.Type.(type) {
		case *ast.StarExpr, *ast.UnaryExpr, *ast.BinaryExpr:
			return true
		}
	}
	return false
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// receiverIsExported reports whether godoc shows d: a function, or a method of an exported type.
func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}
