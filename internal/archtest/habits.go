package archtest

import (
	"fmt"
	"regexp"
)

// maxLines is where a file has become two.
const maxLines = 600

// checkSize returns the files that nobody reads in one sitting; tables of tests may be long.
func checkSize(pkgs []*sourcePackage) []string {
	var bad []string
	for _, p := range pkgs {
		for _, f := range p.production() {
			if f.lines > maxLines {
				bad = append(bad, fmt.Sprintf("%s: %d lines, want at most %d: split it by subject", f.path, f.lines, maxLines))
			}
		}
	}
	return bad
}

var promise = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// checkPromises returns the comments that promise work: it is done now, or it is an issue.
func checkPromises(pkgs []*sourcePackage) []string {
	var bad []string
	for _, f := range allFiles(pkgs) {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if word := promise.FindString(c.Text); word != "" {
					bad = append(bad, fmt.Sprintf("%s: %s: do it, or open an issue", f.at(c.Pos()), word))
				}
			}
		}
	}
	return bad
}

func allFiles(pkgs []*sourcePackage) []*sourceFile {
	var files []*sourceFile
	for _, p := range pkgs {
		files = append(files, p.files...)
	}
	return files
}
