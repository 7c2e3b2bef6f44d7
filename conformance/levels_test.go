package conformance_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
)

// publishedSets holds the SHA-256 of each published set.
var publishedSets = map[string]string{
	"2026-12": "b60cd7f687547c3798dccbefa05fa7e92fb0dc663bee343440fc08fe2b9bb4e6",
}

func TestPublishedSetsNeverChange(t *testing.T) {
	for _, name := range conformance.SetNames() {
		data, err := os.ReadFile(filepath.Join("sets", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != publishedSets[name] {
			t.Errorf("set %s has the hash %s, want %s: publish another set instead", name, got, publishedSets[name])
		}
		delete(publishedSets, name)
	}
	if len(publishedSets) > 0 {
		t.Errorf("published sets are missing: %v", publishedSets)
	}
}

// testable reports whether a program in another process can be tested with c.
func testable(c conformance.Case, subject string) bool {
	switch {
	case c.Run == nil || c.Side() != harness.Both && c.Side().String() != subject:
		return false
	case subject == "client":
		return c.RunsIn(harness.RealTime) || c.Mode == harness.EitherTime
	}
	return c.RunsIn(harness.RealTime) && c.Needs&(harness.Configurable|harness.InProcess|harness.Replicas) == 0
}

func TestSetsContainTestableCases(t *testing.T) {
	for _, name := range conformance.SetNames() {
		set, err := conformance.LoadSet(name)
		if err != nil {
			t.Fatal(err)
		}
		listed := 0
		for _, c := range conformance.List() {
			levels := set.Describe(c.ID)
			for _, subject := range []string{"server", "client"} {
				n := strings.Count(levels, subject+" ")
				listed += n
				if n > 1 || n == 1 && (!testable(c, subject) || c.Strength > harness.Should) {
					t.Errorf("set %s: %s must not be in %s", name, c.ID, levels)
				}
			}
			if strings.Contains(levels, ", extension") {
				t.Errorf("set %s: %s tests an extension, which no level requires", name, c.ID)
			}
		}
		data, err := os.ReadFile(filepath.Join("sets", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		lines := slices.DeleteFunc(strings.Split(string(data), "\n"), func(line string) bool {
			return line == "" || line[0] == '#' || line[0] == '['
		})
		if listed != len(lines) {
			t.Errorf("set %s has %d lines, and %d of them name a case", name, len(lines), listed)
		}
	}
}

// judge tests the reference server over HTTP/1.1, without the given abilities.
func judge(t *testing.T, o conformance.Options, without conformance.Ability) *conformance.Report {
	t.Helper()
	target := reference.New("reference", reference.Interceptors{})
	target.Variants, target.Abilities = []string{"h1"}, target.Abilities&^without
	o.Subject = harness.Server
	r, err := conformance.Execute(t.Context(), target, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLevelNeedsEveryMust(t *testing.T) {
	required := conformance.Options{Level: 1, Set: "2026-12"}
	whole := judge(t, required, harness.Namespaces)
	if l := whole.Levels; !whole.OK() || l.Passed != 1 || len(l.Levels) != 1 || l.Levels[0].Musts.Of < 25 {
		t.Errorf("got OK %v and %+v, want level 1", whole.OK(), l)
	}
	partial := judge(t, required, harness.Compacts)
	l := partial.Levels
	if partial.OK() || l.Passed != 0 || !slices.Contains(l.Missing, "resume/expired") {
		t.Errorf("without compactions: got OK %v and %+v, want no level", partial.OK(), l)
	}
	if l.Levels[0].Musts.Of <= l.Levels[0].Musts.Passed || l.Levels[0].Failed != nil {
		t.Errorf("without compactions: got %+v, want a share and no failure", l.Levels[0])
	}
	var err error
	required.KnownFailures, err = conformance.ParseKnownFailures(strings.NewReader(
		strings.Join(l.Missing, " # the server cannot compact\n") + " # the server cannot compact"))
	if err != nil {
		t.Fatal(err)
	}
	if r := judge(t, required, harness.Compacts); !r.OK() || r.Levels.Passed != 0 {
		t.Errorf("with known failures: got OK %v and %+v, want OK and no level", r.OK(), r.Levels)
	}
}

func TestUnknownLevelIsRefused(t *testing.T) {
	for _, o := range []conformance.Options{{Level: 4}, {Level: -1}, {Set: "2020-01"}} {
		if err := o.Check(); err == nil {
			t.Errorf("%+v: got no error", o)
		}
	}
}
