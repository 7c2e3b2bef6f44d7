package archtest

import (
	"fmt"
	"strings"
	"testing"
)

// A check that can't fail is worth nothing: each is shown the fault that it is there for, and the neighbour that is none.

func TestImportsThatPointUpAreFound(t *testing.T) {
	const ours = modulePath + "/"
	for _, c := range []struct {
		from, target string
		want         string // part of the message; empty: allowed
	}{
		{"internal/rawjson", "bytes", ""},
		{"internal/rawjson", modulePath, "a leaf"},
		{".", ours + "internal/rawjson", ""},
		{".", ours + "internal/memnet", "vocabulary"},
		{".", ours + "framing", "vocabulary"},
		{".", "golang.org/x/exp/maps", "unknown dependency"},
		{"framing", modulePath, ""},
		{"framing", ours + "internal/history", "siblings"},
		{"internal/history", "github.com/tidwall/btree", ""},
		{"internal/history", ours + "internal/rawjson", "the log knows no wire"},
		{"store/memory", ours + "store", ""},
		{"store/memory", ours + "store/bolt", "keeps objects"},
		{"store/memory", ours + "transport", "keeps objects"},
		{"store/bolt", "go.etcd.io/bbolt", ""},
		{"store/memory", "go.etcd.io/bbolt", "only store/bolt may"},
		{"store/bolt", "go.etcd.io/etcd/client/v3", "only store/etcd may"},
		{"transport/h2", ours + "framing", ""},
		{"transport/h2", ours + "internal/rawjson", ""},
		{"transport/h2", ours + "internal/history", "carries frames"},
		{"transport/h2", ours + "transport/chunked", "carries frames"},
		{"transport/h2", "golang.org/x/net/http2/hpack", ""},
		{"watchserver", "golang.org/x/net/http2", "only transport/h2"},
		{"transport/websocket", "nhooyr.io/websocket", ""},
		{"client", "github.com/gorilla/websocket", "only transport/websocket may"},
		{"client", ours + "watchserver", "siblings"},
		{"client", ours + "relay", "imports point down"},
		{"kubeapi", ours + "kubeapi/table", ""},
		{"kubeapi/table", ours + "kubeapi", ""},
		{"kubeapi/table", ours + "informer", "siblings"},
		{"cmd/listwatch", ours + "cmd/listwatch/internal/ui", ""},
		{"cmd/listwatch", ours + "cmd/other", "siblings"},
		{"relay", ours + "nowhere", "no layer"},
		{"nowhere", "fmt", "an unknown package: give it a layer in internal/archtest/layers.go"},
		{"transport/h2/deep", "fmt", "an unknown package"},
	} {
		src := fmt.Sprintf("package p\nimport %q\n", c.target)
		got := strings.Join(checkImports(parse(t, map[string]string{c.from + "/p.go": src})), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.from, c.target, got, c.want)
		}
	}
}

func TestTestFilesAndNestedModulesImportWhatTheyLike(t *testing.T) {
	src := fmt.Sprintf("package p\nimport %q\n", modulePath+"/conformance")
	pkgs := parse(t, map[string]string{"framing/p.go": "package p", "framing/p_test.go": src, "benchmarks/rivals/p.go": src})
	for _, p := range pkgs {
		p.nested = strings.HasPrefix(p.path, "benchmarks/")
	}
	if bad := checkImports(pkgs); bad != nil {
		t.Errorf("got %q, want none", bad)
	}
}

func TestOtherFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		claim string
		check func([]*sourcePackage) []string
		files map[string]string
		want  []string // part of each message
	}{
		{"NoPackageComment", checkPackageComments, map[string]string{"a/a.go": "package a", "a/a_test.go": "// Package a.\npackage a"}, []string{"0 package comments"}},
		{"TwoPackageComments", checkPackageComments, map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "// Package a is.\npackage a"}, []string{"2 package comments"}},
		{"OddPackageComment", checkPackageComments, map[string]string{"a/a.go": "// A is.\npackage a"}, []string{`must begin "Package a "`}},
		{"OnePackageComment", checkPackageComments, map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "//go:build linux\n\npackage a", "c/c.go": "// Command c is.\npackage main"}, nil},

		{"Func", checkDocumented, map[string]string{"a/a.go": "package a\nfunc F() {}\nfunc g() {}"}, []string{"F is exported"}},
		{"Method", checkDocumented, map[string]string{"a/a.go": "package a\ntype t struct{}\nfunc (t) F() {}\n// U is.\ntype U[T any] struct{}\nfunc (*U[t]) G() {}"}, []string{"G is exported"}},
		{"MethodOfHiddenGeneric", checkDocumented, map[string]string{"a/a.go": "package a\ntype u[T any] struct{}\nfunc (*u[T]) G() {}"}, nil},
		{"Type", checkDocumented, map[string]string{"a/a.go": "package a\ntype T struct{ F int }"}, []string{"T is exported"}},
		{"TypeInGroup", checkDocumented, map[string]string{"a/a.go": "package a\n// All.\ntype (\n T int\n // U is.\n U int\n)"}, []string{"T is exported"}},
		{"InterfaceMethod", checkDocumented, map[string]string{"a/a.go": "package a\n// I is; M ends.\ntype I interface{ M(); N()\n// L is after K.\nL(); K() }"}, []string{"N is exported"}},
		{"Constraint", checkDocumented, map[string]string{"a/a.go": "package a\n// I is.\ntype I[T any] interface{ *T; M(); N() }"}, nil},
		{"OnlyInterfaceMethod", checkDocumented, map[string]string{"a/a.go": "package a\n// I is.\ntype I interface{ M() }"}, nil},
		{"Value", checkDocumented, map[string]string{"a/a.go": "package a\nvar A, b = 1, 2\n// These.\nconst (\n C = 1\n)\nconst (\n D = 1 // D is.\n E = 2\n)"}, []string{"A is exported", "E is exported"}},
		{"Programs", checkDocumented, map[string]string{"a/a.go": "package main\nfunc F() {}", "b/b_test.go": "package b\nfunc F() {}"}, nil},

		{"LongFile", checkSize, map[string]string{"a/a.go": "package a" + strings.Repeat("\n", maxLines) + "// end"}, []string{"601 lines"}},
		{"LongEnough", checkSize, map[string]string{"a/a.go": "package a" + strings.Repeat("\n", maxLines), "a/a_test.go": "package a" + strings.Repeat("\n", maxLines) + "// end"}, nil},

		{"Promise", checkPromises, map[string]string{"a/a_test.go": "package a\n/* FIXME */ // mastodon, TODOS\n// TODO(me): later\n"}, []string{"FIXME", "TODO"}},

		{"Sleep", checkSleeps, map[string]string{"a/a_test.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }"}, []string{"a/a_test.go:3:12: time.Sleep"}},
		{"SleepByAnotherName", checkSleeps, map[string]string{"a/a.go": "package a\nimport t \"time\"\nvar nap = t.Sleep"}, []string{"time.Sleep"}},
		{"SleepBesideABubble", checkSleeps, map[string]string{"a/a_test.go": bubble + "func f() { time.Sleep(1) }"}, []string{"time.Sleep"}},
		{"SleepInABubble", checkSleeps, map[string]string{"a/a_test.go": bubble, "a/b_test.go": "package a\nimport \"time\"\nfunc inBubble(*testing.T) { time.Sleep(1) }"}, nil},
		{"SleepInABubbleOfAHelper", checkSleeps, map[string]string{"a/a_test.go": bubble + "func run(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }\nfunc TestC(t *testing.T) { run(t, func() { time.Sleep(1) }) }"}, nil},
		{"SleepInAKit", checkSleeps, map[string]string{"a/a.go": bubble, "a/b.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }"}, nil},
		{"SleepInAProgram", checkSleeps, map[string]string{"cmd/a/a.go": "package main\nimport \"time\"\nfunc f() { time.Sleep(1) }", "benchmarks/a.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }"}, nil},
		{"WallClock", checkClocks, map[string]string{"client/a.go": "package a\nimport \"time\"\nvar at = time.Now().UnixNano()"}, []string{"client/a.go:3:10: UnixNano"}},
		{"WallClockThatIsNone", checkClocks, map[string]string{"client/a.go": "package a\nimport \"time\"\nvar longAgo = time.Unix(1, 0)", "store/a.go": "package a\nimport \"time\"\nvar at = time.Now().Unix()"}, nil},
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

// bubble is a test file that sleeps in bubbles only.
const bubble = `package a
import ("testing"; "testing/synctest"; "time")
func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }
func TestB(t *testing.T) { synctest.Test(t, inBubble) }
`
