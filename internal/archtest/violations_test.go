package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each check must find the fault that it exists for, and accept similar code without the fault.

func TestForbiddenImportsAreFound(t *testing.T) {
	const ours = modulePath + "/"
	for _, c := range []struct {
		from, target string
		want         string // part of the message; empty if the import is allowed
	}{
		{"internal/rawjson", "bytes", ""},
		{"internal/rawjson", modulePath, "a leaf"},
		{".", ours + "internal/rawjson", ""},
		{".", ours + "internal/memnet", "vocabulary"},
		{".", ours + "framing", "vocabulary"},
		{".", "golang.org/x/exp/maps", "unknown dependency"},
		{"framing", modulePath, ""},
		{"framing", ours + "internal/history", "siblings"},
		{"internal/ordered", "github.com/tidwall/btree", ""},
		{"internal/history", ours + "internal/compress", "the log does not know the wire"},
		{"store/memory", ours + "store", ""},
		{"store/memory", ours + "store/bolt", "keeps objects"},
		{"store/memory", ours + "transport", "keeps objects"},
		{"store/bolt", "go.etcd.io/bbolt", ""},
		{"store/memory", "go.etcd.io/bbolt", "only store/bolt may"},
		{"store/bolt", "go.etcd.io/etcd/client/v3", "only store/etcd may"},
		{"store/etcd", ours + "transport", "keeps objects"},
		{"transport/h2", ours + "framing", ""},
		{"transport/h2", ours + "internal/rawjson", ""},
		{"transport/h2", ours + "internal/history", "carries frames"},
		{"transport/h2", ours + "transport/chunked", "carries frames"},
		{"transport/h2/internal/loop", "golang.org/x/net/http2/hpack", ""},
		{"watchserver", "golang.org/x/net/http2", "only transport/h2"},
		{"transport/websocket/nhooyr", "nhooyr.io/websocket", ""},
		{"transport/websocket", "nhooyr.io/websocket", "only transport/websocket/nhooyr may"},
		{"client", "github.com/gorilla/websocket", "only transport/websocket/gorilla, "},
		{"client", ours + "watchserver", "siblings"},
		{"client", ours + "relay", "higher layer"},
		{"kubeapi", ours + "kubeapi/table", ""},
		{"kubeapi/table", ours + "kubeapi", ""},
		{"relay", ours + "informer", "siblings"},
		{"conformance/internal/cases", ours + "cmd/listwatch", "higher layer"},
		{"cmd/listwatch", ours + "cmd/listwatch/internal/ui", ""},
		{"cmd/listwatch", ours + "cmd/other", "siblings"},
		{"interop/storage", ours + "interop/internal/etcdtest", ""},
		{"interop/storage", "k8s.io/apiserver/pkg/storage", ""},
		{"cmd/listwatch", ours + "interop/storage", "higher layer"},
		{"kubeapi", "k8s.io/apiserver/pkg/storage", "only kubeapi/kubetest/... may"},
		{"kubeapi", "k8s.io/kubectl/pkg/cmd", "unknown dependency"},
		{"relay", ours + "nowhere", "no layer"},
		{"nowhere", "fmt", "an unknown package: add it to a layer in internal/archtest/layers_test.go"},
		{"transport/h2/deep", "fmt", "an unknown package"},
	} {
		src := fmt.Sprintf("package p\nimport %q\n", c.target)
		got := strings.Join(checkImports(parse(t, map[string]string{c.from + "/p.go": src})), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.from, c.target, got, c.want)
		}
	}
}

func TestTestFilesImportAnything(t *testing.T) {
	src := fmt.Sprintf("package p\nimport %q\n", modulePath+"/conformance")
	r := parse(t, map[string]string{"framing/p.go": "package p", "framing/p_test.go": src})
	if bad := checkImports(r); bad != nil {
		t.Errorf("got %q, want no violation", bad)
	}
}

func TestForbiddenRequirementsAreFound(t *testing.T) {
	const ours = modulePath + "/"
	for _, c := range []struct {
		module, line string
		want         string // part of the message; empty if the requirement is allowed
	}{
		{".", "require golang.org/x/net v0.1.0", ""},
		{".", "require (\n\tgithub.com/spf13/cobra v1.0.0\n)", "requires github.com/spf13/cobra, which"},
		{".", "require google.golang.org/grpc v1.0.0 // indirect", "requires google.golang.org/grpc indirectly"},
		{".", "require golang.org/x/text v0.1.0 // indirect", ""},
		{"store/etcd", "require google.golang.org/grpc v1.0.0 // indirect", ""},
		{"store/etcd", "require go.etcd.io/etcd/client/v3 v3.0.0", ""},
		{"store/etcd", "require " + ours + "conformance v0.0.0", "which moduleRules does not allow"},
		{"conformance", "require " + modulePath + " v0.0.0", ""},
		{"kubeapi", "require " + ours + "conformance v0.0.0", "requires " + ours + "conformance, which"},
		{"cmd/listwatch", "require " + ours + "store/etcd v0.0.0", ""},
		{"interop", "require k8s.io/client-go v0.1.0", ""},
		{"kubeapi/more", "", "unknown module"},
	} {
		r := parse(t, map[string]string{c.module + "/go.mod": "module m\n\n" + c.line + "\n"})
		got := strings.Join(checkModules(r), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("module %s with %q: got %q, want %q", c.module, c.line, got, c.want)
		}
	}
}

func TestWrongWorkspacesAreFound(t *testing.T) {
	files := map[string]string{
		"go.mod": "module m", "kubeapi/go.mod": "module m/kubeapi", "interop/go.mod": "module m/interop",
		"tools/go.mod": "module m/tools",
		"go.work":      "use (\n\t.\n\t./kubeapi\n)\n", "interop/go.work": "use (\n\t.\n\t..\n\t../kubeapi\n)\n",
	}
	if bad := checkWorkspaces(parse(t, files)); bad != nil {
		t.Errorf("got %q, want no violation", bad)
	}
	files["go.work"] = "use .\nuse ./interop\n"
	files["interop/go.work"] = "use (\n\t.\n\t..\n\t../tools\n)\n"
	want := []string{
		"./go.work: lists module kubeapi: false", "./go.work: lists module interop: true",
		"interop/go.work: lists module kubeapi: false", "interop/go.work: lists module tools: true",
	}
	bad := checkWorkspaces(parse(t, files))
	for _, w := range want {
		if !strings.Contains(strings.Join(bad, "\n"), w) {
			t.Errorf("got %q, want %q among them", bad, w)
		}
	}
	if len(bad) != len(want) {
		t.Errorf("got %d violations, want %d: %q", len(bad), len(want), bad)
	}
}

func TestUnlistedInternalImportsAreFound(t *testing.T) {
	importing := func(p string) string { return fmt.Sprintf("package p\nimport %q\n", modulePath+"/"+p) }
	files := map[string]string{"client/p.go": importing("internal/rawjson")}
	for m, list := range internalImports {
		files[m+"/go.mod"] = "module m"
		for i, p := range list {
			files[fmt.Sprintf("%s/deep/p%d.go", m, i)] = importing(p)
		}
	}
	if bad := checkInternalImports(parse(t, files)); bad != nil {
		t.Errorf("got %q, want no violation", bad)
	}
	for _, c := range []struct{ file, target, want string }{
		{"kubeapi/q.go", "internal/memnet", "module kubeapi must not import internal/memnet"},
		{"kubeapi/q_test.go", "internal/memnet", ""},
		{"kubeapi/q.go", "kubeapi/internal/x", ""},
		{"examples/q/q_test.go", "internal/memnet", "module examples must not import"},
		{"examples/q/q.go", "framing", ""},
		{"kubeapi/deep/p2.go", "framing", "no longer imports " + internalImports["kubeapi"][2]},
	} {
		old, ok := files[c.file]
		files[c.file] = importing(c.target)
		got := strings.Join(checkInternalImports(parse(t, files)), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.file, c.target, got, c.want)
		}
		if delete(files, c.file); ok {
			files[c.file] = old
		}
	}
}

func TestOtherFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		claim string
		check func(*repository) []string
		files map[string]string
		want  []string // part of each message
	}{
		{
			"NoPackageComment", checkPackageComments,
			map[string]string{"a/a.go": "package a", "a/a_test.go": "// Package a.\npackage a"},
			[]string{"0 package comments"},
		},
		{
			"TwoPackageComments", checkPackageComments,
			map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "// Package a is.\npackage a"},
			[]string{"2 package comments"},
		},
		{
			"OddPackageComment", checkPackageComments,
			map[string]string{"a/a.go": "// A is.\npackage a"},
			[]string{`must begin "Package a "`},
		},
		{
			"OnePackageComment", checkPackageComments,
			map[string]string{
				"a/a.go": "// Package a is.\npackage a", "a/b.go": "//go:build linux\n\npackage a",
				"c/c.go": "// Command c is.\npackage main",
			},
			nil,
		},

		{
			"Func", checkDocumented,
			map[string]string{"a/a.go": "package a\nfunc F() {}\nfunc g() {}"},
			[]string{"F is exported"},
		},
		{
			"Method", checkDocumented,
			map[string]string{
				"a/a.go": "package a\ntype t struct{}\nfunc (t) F() {}\n// U is.\ntype U[T any] struct{}\nfunc (*U[t]) G() {}",
			},
			[]string{"G is exported"},
		},
		{
			"MethodOfHiddenGeneric", checkDocumented,
			map[string]string{"a/a.go": "package a\ntype u[T any] struct{}\nfunc (*u[T]) G() {}"},
			nil,
		},
		{
			"Type", checkDocumented,
			map[string]string{"a/a.go": "package a\ntype T struct{ F int }"},
			[]string{"T is exported"},
		},
		{
			"TypeInGroup", checkDocumented,
			map[string]string{"a/a.go": "package a\n// All.\ntype (\n T int\n // U is.\n U int\n)"},
			[]string{"T is exported"},
		},
		{
			"InterfaceMethod", checkDocumented,
			map[string]string{
				"a/a.go": "package a\n// I is; M ends.\ntype I interface{ M(); N()\n// L is after K.\nL(); K() }",
			},
			[]string{"N is exported"},
		},
		{
			"Constraint", checkDocumented,
			map[string]string{"a/a.go": "package a\n// I is.\ntype I[T any] interface{ *T; M(); N() }"},
			nil,
		},
		{
			"OnlyInterfaceMethod", checkDocumented,
			map[string]string{"a/a.go": "package a\n// I is.\ntype I interface{ M() }"},
			nil,
		},
		{
			"Value", checkDocumented,
			map[string]string{
				"a/a.go": "package a\nvar A, b = 1, 2\n// These.\nconst (\n C = 1\n)\nconst (\n D = 1 // D is.\n E = 2\n)",
			},
			[]string{"A is exported", "E is exported"},
		},
		{
			"Programs", checkDocumented,
			map[string]string{"a/a.go": "package main\nfunc F() {}", "b/b_test.go": "package b\nfunc F() {}"},
			nil,
		},

		{
			"InternalResult", checkExportedTypes,
			map[string]string{"a/a.go": showing +
				"func F() []*x.T { return nil }\nfunc (t t) G(x.T) {}\nfunc g(x.T) {}"},
			[]string{"F shows the internal type x.T"},
		},
		{
			"InternalParameter", checkExportedTypes,
			map[string]string{"a/a.go": showing + "func (u *U) F(map[int]x.T) {}"},
			[]string{"F shows"},
		},
		{
			"InternalMembers", checkExportedTypes,
			map[string]string{"a/a.go": showing +
				"type S struct { A x.T; b x.T }\ntype s struct { A x.T }\ntype I interface { M() x.T; n() x.T }"},
			[]string{"A shows", "M shows"},
		},
		{
			"InternalTypesInside", checkExportedTypes,
			map[string]string{
				"a/internal/a.go": showing + "func F(x.T) {}",
				"b/b.go":          strings.Replace(showing, "package a", "package main", 1) + "func F(x.T) {}",
			},
			nil,
		},

		{
			"LongFile", checkFileSize,
			map[string]string{"a/a.go": "package a" + strings.Repeat("\n", maxLines) + "// end"},
			[]string{"601 lines"},
		},
		{
			"FileAtTheLimit", checkFileSize,
			map[string]string{
				"a/a.go":      "package a" + strings.Repeat("\n", maxLines),
				"a/a_test.go": "package a" + strings.Repeat("\n", maxLines) + "// end",
			},
			nil,
		},

		{
			"WideComment", checkCommentWidth,
			map[string]string{"a/a.go": "package a\n\n" + wide(101) + "\nvar a int " + wide(91) + "\n/*\n" + wide(101) +
				"*/"},
			[]string{
				"a/a.go:3: a comment of 101", "a/a.go:4: a comment of 101",
				"a/a.go:6: a comment of 103",
			},
		},
		{
			"WideCommentWithTabs", checkCommentWidth,
			map[string]string{"a/a.go": "package a\n\nfunc f() {\n\t" + wide(97) + "\n\t" + wide(96) + "\n}"},
			[]string{"a/a.go:4"},
		},
		{
			"NarrowComment", checkCommentWidth,
			map[string]string{"a/a.go": "package a\n\n" + wide(100) + "\n// " + strings.Repeat("x", 100) +
				"\n//go:generate x " + strings.Repeat("x", 100)},
			nil,
		},

		{"LargeStruct", checkStructSize, map[string]string{
			"a/a.go": "package a\ntype t struct { a, b, c, d, e, f, g, h, i, j int }\n" +
				"type s struct { t; a, b, c, d, e, f, g, h, i, j, k int }",
		}, slices.Concat([]string{"a.s has 21 fields"}, unusedWideStructs())},
		{"PartOfAStruct", checkParts, map[string]string{
			"a/a.go": "package a\ntype s struct { heading; Exported; owner; noun }\n" +
				"type heading struct{ a int }\nvar x = s{heading: heading{a: 1}}\n" +
				"type Exported struct{ a int }\nfunc (e *Exported) f() {}\n" +
				"type owner struct{ a int }\nfunc (o *owner) f() {}\n" +
				"type noun struct{ a int }\nfunc f(n noun) {}",
		}, []string{"a.heading is only a part of a.s", "a.Exported is only a part of a.s"}},
		{"PartOfTwoStructs", checkParts, map[string]string{
			"a/a.go": "package a\ntype s struct { part }\ntype t struct { part }\ntype part struct { a int }",
		}, nil},
		{"UsedByAnotherPackage", checkParts, map[string]string{
			"a/a.go": "package a\ntype s struct { Part }\ntype Part struct { a int }",
			"b/b.go": "package b\nimport \"" + modulePath + "/a\"\nvar x a.Part",
		}, nil},

		{"TypeInAHeader", checkHomes, map[string]string{
			"a/a.go": "package a\ntype t struct{}",
			"a/b.go": "package a\nfunc newT() *t { return nil }\n" + methods("t", 4),
		}, slices.Concat([]string{"the constructor of a.t is in b.go", "a.t has 0 of its 4 methods"},
			unusedScattered())},
		{"ScatteredType", checkHomes, map[string]string{
			"a/a.go": "package a\ntype t struct{}\n" + methods("t", 4), "a/b.go": "package a\nfunc (t) b() {}",
			"a/c.go": "package a\nfunc (t) c() {}", "a/d.go": "package a\nfunc (t) d() {}",
			"a/e.go": "package a\nfunc (t) e() {}",
		}, slices.Concat([]string{"a.t has 4 of its 8 methods in its own file, and the others in 4 files"},
			unusedScattered())},
		{"TypeAtHome", checkHomes, map[string]string{
			"a/a.go": "package a\ntype t[K any] struct{}\nfunc New() *t[int] { return nil }\nfunc (t[K]) a() {}",
			"a/b.go": "package a\nfunc (t[K]) b() {}\nfunc (*t[K]) c() {}",
		}, unusedScattered()},

		{"LargeInterface", checkInterfaces, map[string]string{
			"a/a.go": "package a\ntype i interface { a(); b(); c(); d(); e() }\ntype j interface { i; f() }",
		}, slices.Concat([]string{"a.i has 5 methods"}, unusedWideInterfaces())},
		{"FunctionalOptions", checkOptions, map[string]string{
			"a/a.go": "package a\ntype T struct{}\ntype Option func(*T)\nfunc New(with ...Option) *T { return nil }\n" +
				"func Open(with ...func(*T)) {}\nfunc (T) Script(steps ...Option) {}\nfunc First(of ...func(int) error) {}",
		}, []string{"a.New has functional options", "a.Open has functional options"}},

		{"FossilReceiver", checkReceivers, map[string]string{
			"a/a.go": "package a\nfunc (x *Reader) f() {}\nfunc (s LabelSelector) f() {}\nfunc (p pair[K, V]) f() {}",
		}, []string{"Reader.f is x"}},
		{"ContextField", checkContextFields, map[string]string{
			"a/a.go": "package a\nimport \"context\"\ntype s struct {\n a context.Context\n b context.Context // ends with s\n}",
		}, []string{"a.s holds a context"}},
		{"WideCode", checkCodeWidth, map[string]string{
			"a/a.go": "package a\nvar " + strings.Repeat("x", 117) + " = 1\nvar s = \"" +
				strings.Repeat("x", 130) + "\"",
		}, []string{"a/a.go:2: 125 columns"}},

		{
			"Promise", checkTodos,
			map[string]string{"a/a_test.go": "package a\n/* FIXME */ // mastodon, TODOS\n// TODO(me): later\n"},
			[]string{"FIXME", "TODO"},
		},

		{
			"Sleep", checkSleeps,
			map[string]string{"a/a_test.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }"},
			[]string{"a/a_test.go:3:12: time.Sleep"},
		},
		{
			"SleepOfARenamedImport", checkSleeps,
			map[string]string{"a/a.go": "package a\nimport t \"time\"\nvar nap = t.Sleep"},
			[]string{"time.Sleep"},
		},
		{
			"SleepOutsideABubble", checkSleeps,
			map[string]string{"a/a_test.go": bubble + "func f() { time.Sleep(1) }"},
			[]string{"time.Sleep"},
		},
		{
			"SleepInABubble", checkSleeps,
			map[string]string{
				"a/a_test.go": bubble,
				"a/b_test.go": "package a\nimport \"time\"\nfunc inBubble(*testing.T) { time.Sleep(1) }",
			},
			nil,
		},
		{
			"SleepInABubbleOfAHelper", checkSleeps,
			map[string]string{"a/a_test.go": bubble +
				"func run(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }\nfunc TestC(t *testing.T) { run(t, func() { time.Sleep(1) }) }"},
			nil,
		},
		{
			"SleepInABubbleOfTwoHelpers", checkSleeps,
			map[string]string{"a/a_test.go": bubble +
				"func outer(t *testing.T, f func()) { run(t, func() { f() }) }\nfunc run(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }\nfunc TestC(t *testing.T) { outer(t, func() { time.Sleep(1) }) }"},
			nil,
		},
		{
			"SleepAfterABubble", checkSleeps,
			map[string]string{"a/a_test.go": bubble +
				"func run(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }\nfunc TestC(t *testing.T) { run(t, func() {}); time.Sleep(1) }"},
			[]string{"time.Sleep"},
		},
		{
			"SleepInATestKit", checkSleeps,
			map[string]string{"a/a.go": bubble, "a/b.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }"},
			nil,
		},
		{
			"SleepInAProgram", checkSleeps,
			map[string]string{
				"cmd/a/a.go":      "package main\nimport \"time\"\nfunc f() { time.Sleep(1) }",
				"benchmarks/a.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }",
			},
			nil,
		},
		{
			"WallClock", checkClocks,
			map[string]string{"client/a.go": "package a\nimport \"time\"\nvar at = time.Now().UnixNano()"},
			[]string{"client/a.go:3:10: UnixNano"},
		},
		{
			"NoWallClock", checkClocks,
			map[string]string{
				"client/a.go": "package a\nimport \"time\"\nvar longAgo = time.Unix(1, 0)",
				"store/a.go":  "package a\nimport \"time\"\nvar at = time.Now().Unix()",
			},
			nil,
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got := c.check(parse(t, c.files))
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}

// unusedWideStructs returns the findings of checkStructSize in a repository without wide structs.
func unusedWideStructs() []string { return checkStructSize(&repository{}) }

// unusedScattered and unusedWideInterfaces return the findings of their checks in an empty
// repository.
func unusedScattered() []string      { return checkHomes(&repository{}) }
func unusedWideInterfaces() []string { return checkInterfaces(&repository{}) }

// methods returns n methods of the type.
func methods(of string, n int) (source string) {
	for i := range n {
		source += fmt.Sprintf("func (%s) m%d() {}\n", of, i)
	}
	return source
}

// showing is the beginning of a file that imports an internal package.
const showing = "package a\nimport \"" + modulePath + "/internal/x\"\n"

// bubble is a test file that sleeps in synctest bubbles only.
const bubble = `package a
import ("testing"; "testing/synctest"; "time")
func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }
func TestB(t *testing.T) { synctest.Test(t, inBubble) }
`

// wide returns a comment of n columns.
func wide(n int) string { return "// x " + strings.Repeat("x", n-5) }
