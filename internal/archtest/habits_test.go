package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxLines is the length at which a file should be split.
const maxLines = 600

// checkFileSize returns the files with more than maxLines lines. Tests, which may hold long tables,
// are not checked.
func checkFileSize(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		for _, f := range p.production() {
			if n := len(f.lines); n > maxLines {
				bad = append(bad, fmt.Sprintf("%s: %d lines, want at most %d: split it by subject", f.path, n,
					maxLines))
			}
		}
	}
	return bad
}

var todo = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// checkTodos returns the comments that promise future work. Such work must be done
// now or become an issue.
func checkTodos(r *repository) []string {
	var bad []string
	eachComment(r, func(f *sourceFile, c *ast.Comment) {
		if word := todo.FindString(c.Text); word != "" {
			bad = append(bad, fmt.Sprintf("%s: %s: do it, or open an issue", f.at(c.Pos()), word))
		}
	})
	return bad
}

// A line with a comment has at most maxColumns columns; a tab counts as tabWidth.
const (
	maxColumns = 100
	tabWidth   = 4
)

// checkCommentWidth returns the lines that are too wide because of a comment. A line that is one
// long word, such as a link, and a directive of a tool are allowed.
func checkCommentWidth(r *repository) []string {
	var bad []string
	eachComment(r, func(f *sourceFile, c *ast.Comment) {
		start := f.fset.Position(c.Pos())
		for i, text := range strings.Split(c.Text, "\n") {
			if len(strings.Fields(strings.TrimPrefix(text, "//"))) < 2 || isDirective(text) {
				continue
			}
			line := strings.TrimRight(f.lines[start.Line-1+i], "\r")
			if n := columns(line); n > maxColumns {
				bad = append(bad, fmt.Sprintf("%s:%d: a comment of %d columns, want at most %d", f.path, start.Line+i,
					n, maxColumns))
			}
		}
	})
	return bad
}

func isDirective(comment string) bool {
	return strings.HasPrefix(comment, "//go:") || strings.HasPrefix(comment, "//lint:")
}

func columns(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", strings.Repeat(" ", tabWidth)))
}

// eachComment calls visit for each comment of r, tests included.
func eachComment(r *repository, visit func(*sourceFile, *ast.Comment)) {
	for _, p := range r.packages {
		for _, f := range p.files {
			for _, group := range f.ast.Comments {
				for _, c := range group.List {
					visit(f, c)
				}
			}
		}
	}
}

// maxCodeColumns limits the lines of code.
const maxCodeColumns = 120

// alignment is the space that gofmt adds to align the lines of a table.
var alignment = regexp.MustCompile(`  +`)

// checkCodeWidth returns the lines of code that are too wide. A line that is too wide because of
// one long string or link is allowed, and so is one that is too wide because of the next lines of a
// table.
func checkCodeWidth(r *repository) []string {
	var bad []string
	for _, p := range r.packages {
		for _, f := range p.files {
			literals := stringLines(f)
			for i, line := range f.lines {
				if n := columns(alignment.ReplaceAllString(line, " ")); n > maxCodeColumns+literals[i+1] {
					bad = append(bad, fmt.Sprintf("%s:%d: %d columns, want at most %d", f.path, i+1, n, maxCodeColumns))
				}
			}
		}
	}
	return bad
}

// stringLines returns for each line of f the length of its longest string, if that is long.
func stringLines(f *sourceFile) map[int]int {
	length := map[int]int{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			start, end := f.fset.Position(lit.Pos()).Line, f.fset.Position(lit.End()).Line
			for line := start; line <= end; line++ {
				size := columns(lit.Value)
				if end > start {
					size = 1 << 20 // a raw string of several lines
				}
				if size > 60 {
					length[line] = max(length[line], size)
				}
			}
		}
		return true
	})
	return length
}
