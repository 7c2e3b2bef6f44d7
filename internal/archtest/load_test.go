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

// A repository is the source that the checks examine.
type repository struct {
	modules    []*module
	workspaces []*workspace
	packages   []*sourcePackage
}

// A sourceFile is one parsed Go file.
type sourceFile struct {
	path  string // relative to the root of the repository, with slashes
	lines []string
	fset  *token.FileSet
	ast   *ast.File
}

// isTest reports whether f is compiled for tests only.
func (f *sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// at formats pos for a message.
func (f *sourceFile) at(pos token.Pos) string { return f.fset.Position(pos).String() }

// A sourcePackage is the Go files of one directory.
type sourcePackage struct {
	path   string // relative to the root of the repository; "." is the root package
	module string // the directory of its module, in the same form
	files  []*sourceFile
}

// production returns the files of p that are not tests.
func (p *sourcePackage) production() []*sourceFile {
	var files []*sourceFile
	for _, f := range p.files {
		if !f.isTest() {
			files = append(files, f)
		}
	}
	return files
}

// load parses all packages under root, whatever their build constraints, and the files go.mod and
// go.work. It only reads files and does not run the go command, so the test cache knows what the
// result depends on.
func load(root string) (*repository, error) {
	l := newLoader()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if skipped(rel) {
				return fs.SkipDir
			}
			return nil
		}
		if !wanted(rel) {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return l.add(rel, string(text))
	})
	return l.finish(), err
}

// skipped reports whether the checks ignore the directory dir, as the go command does.
func skipped(dir string) bool {
	name := path.Base(dir)
	return dir != "." &&
		(name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_"))
}

func wanted(file string) bool {
	name := path.Base(file)
	return name == "go.mod" || name == "go.work" || path.Ext(name) == ".go"
}

type loader struct {
	repository
	fset   *token.FileSet
	byPath map[string]*sourcePackage
}

func newLoader() *loader {
	return &loader{fset: token.NewFileSet(), byPath: map[string]*sourcePackage{}}
}

// add parses one file. rel is its path, relative to the root of the repository.
func (l *loader) add(rel, text string) error {
	dir := path.Dir(rel)
	switch path.Base(rel) {
	case "go.mod":
		l.modules = append(l.modules, parseModule(dir, text))
		return nil
	case "go.work":
		l.workspaces = append(l.workspaces, parseWorkspace(dir, text))
		return nil
	}
	tree, err := parser.ParseFile(l.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(tree) {
		return nil // nobody writes or reads it
	}
	p, ok := l.byPath[dir]
	if !ok {
		p = &sourcePackage{path: dir}
		l.byPath[dir] = p
		l.packages = append(l.packages, p)
	}
	p.files = append(p.files, &sourceFile{rel, strings.Split(strings.TrimSuffix(text, "\n"), "\n"), l.fset, tree})
	return nil
}

// finish assigns each package to its module.
func (l *loader) finish() *repository {
	for _, p := range l.packages {
		p.module = "."
		for _, m := range l.modules {
			if inside(p.path, m.dir) && len(m.dir) > len(p.module) {
				p.module = m.dir
			}
		}
	}
	return &l.repository
}

// inside reports whether dir is the directory parent or a directory below it.
func inside(dir, parent string) bool {
	return parent == "." || dir == parent || strings.HasPrefix(dir, parent+"/")
}

// base returns the name of the file f without its directory.
func base(f *sourceFile) string { return path.Base(f.path) }
