package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A module holds the parts of a go.mod file that the checks use.
type module struct {
	dir      string   // relative to the root of the repository
	requires []string // paths of the required modules
	indirect []string // paths of the modules that are required with the comment "// indirect"
}

// A workspace holds the parts of a go.work file that the checks use.
type workspace struct {
	dir  string   // relative to the root of the repository
	uses []string // directories of modules, also relative to the root
}

func parseModule(dir, text string) *module {
	m := &module{dir: dir}
	for _, line := range directives(text, "require") {
		name, rest, _ := strings.Cut(line, " ")
		if strings.HasSuffix(rest, "// indirect") {
			m.indirect = append(m.indirect, name)
		} else {
			m.requires = append(m.requires, name)
		}
	}
	return m
}

func parseWorkspace(dir, text string) *workspace {
	w := &workspace{dir: dir}
	for _, line := range directives(text, "use") {
		w.uses = append(w.uses, path.Join(dir, line))
	}
	return w
}

// directives returns the arguments of all directives named verb in a go.mod or go.work file, one
// string for each line.
func directives(text, verb string) []string {
	var lines []string
	inBlock := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch rest, ok := strings.CutPrefix(line, verb+" "); {
		case ok && rest == "(":
			inBlock = true
		case ok:
			lines = append(lines, rest)
		case line == ")":
			inBlock = false
		case inBlock && line != "":
			lines = append(lines, line)
		}
	}
	return lines
}

// checkModules returns the go.mod files that require a module which the table moduleRules does not
// allow, and the modules without a rule.
func checkModules(r *repository) []string {
	var bad []string
	for _, m := range r.modules {
		i := slices.IndexFunc(moduleRules, func(rule moduleRule) bool { return rule.dir == m.dir })
		if i < 0 {
			bad = append(bad, m.dir+
				": an unknown module: add a rule to moduleRules in internal/archtest/modulerules_test.go")
			continue
		}
		bad = append(bad, moduleRules[i].check(m)...)
	}
	return bad
}

// check returns the requirements of m that r forbids.
func (r moduleRule) check(m *module) []string {
	if r.anything {
		return nil
	}
	var bad []string
	for _, name := range m.requires {
		if !r.allows(name) {
			bad = append(bad, fmt.Sprintf("%s/go.mod requires %s, which moduleRules does not allow", m.dir, name))
		}
	}
	for _, name := range m.indirect {
		if hasAnyPrefix(name, heavy) && !hasAnyPrefix(name, r.heavy) {
			bad = append(bad, fmt.Sprintf("%s/go.mod requires %s indirectly: users of this module must not get it",
				m.dir, name))
		}
	}
	return bad
}

// allows reports whether the module may require the module called name.
func (r moduleRule) allows(name string) bool {
	if dir, ours := ourPackage(name); ours {
		return slices.Contains(r.ours, dir)
	}
	return hasAnyPrefix(name, r.others) || hasAnyPrefix(name, r.heavy)
}

// checkWorkspaces returns the differences between the go.work files and the modules. The workspace
// at the root contains all modules except interop, the rivals and the tools. The module
// interop has a workspace of its own, which contains interop and all modules of the root workspace.
// In a workspace, the modules that it lacks would raise the versions of the dependencies of the
// other modules.
func checkWorkspaces(r *repository) []string {
	var bad []string
	for _, w := range r.workspaces {
		for _, m := range r.modules {
			want := m.dir != toolsModule && m.dir != rivalsModule && (m.dir != interopModule || w.dir == interopModule)
			if got := slices.Contains(w.uses, m.dir); got != want {
				bad = append(bad, fmt.Sprintf("%s/go.work: lists module %s: %t, want %t", w.dir, m.dir, got, want))
			}
		}
	}
	return bad
}

// ourPackage returns the directory of a package or module of this repository. It reports false for
// the import path of another repository.
func ourPackage(importPath string) (dir string, ours bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

// hasAnyPrefix reports whether name is one of the import paths in prefixes or below one of them.
func hasAnyPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return name == prefix || strings.HasPrefix(name, prefix+"/")
	})
}
