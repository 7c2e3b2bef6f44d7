package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A sourceFile is one parsed Go file.
type sourceFile struct {
	path  string // from the root of the repository, with slashes
	lines int
	fset  *token.FileSet
	ast   *ast.File
}

// isTest reports whether f is compiled for tests only.
func (f *sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// at returns where pos is, for a message.
func (f *sourceFile) at(pos token.Pos) string { return f.fset.Position(pos).String() }

// A sourcePackage is the Go files of one directory.
type sourcePackage struct {
	path   string // from the root of the repository; "." is the root package
	nested bool   // it belongs to a module of its own, which no other package can import
	files  []*sourceFile
}

// production returns the files that are no tests.
func (p *sourcePackage) production() []*sourceFile {
	var files []*sourceFile
	for _, f := range p.files {
		if !f.isTest() {
			files = append(files, f)
		}
	}
	return files
}

// load parses the packages beneath root, whatever their build constraints. It reads through package os alone, not by running the go
// command: so the go command knows what the test has read, and runs it again when any of that has changed.
func load(root string) ([]*sourcePackage, error) {
	l := &loader{root: root, fset: token.NewFileSet(), packages: map[string]*sourcePackage{}}
	err := filepath.WalkDir(root, l.visit)
	return l.order, err
}

type loader struct {
	root     string
	fset     *token.FileSet
	modules  []string // nested ones, as paths of directories
	packages map[string]*sourcePackage
	order    []*sourcePackage
}

func (l *loader) visit(file string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(l.root, file)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	if d.IsDir() {
		return l.enter(rel, file)
	}
	if path.Ext(rel) != ".go" {
		return nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return l.add(rel, src)
}

// enter decides about a directory: the go command passes over the same ones.
func (l *loader) enter(rel, dir string) error {
	if rel == "." {
		return nil
	}
	if name := path.Base(rel); name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		l.modules = append(l.modules, rel)
	}
	return nil
}

// add parses a file into its package.
func (l *loader) add(rel string, src []byte) error {
	tree, err := parser.ParseFile(l.fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(rel)
	p, ok := l.packages[dir]
	if !ok {
		p = &sourcePackage{path: dir, nested: l.inModule(dir)}
		l.packages[dir] = p
		l.order = append(l.order, p)
	}
	p.files = append(p.files, &sourceFile{rel, l.fset.File(tree.FileStart).LineCount(), l.fset, tree})
	return nil
}

func (l *loader) inModule(dir string) bool {
	for _, m := range l.modules {
		if dir == m || strings.HasPrefix(dir, m+"/") {
			return true
		}
	}
	return false
}
