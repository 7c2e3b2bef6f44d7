//go:build !race

package components

import (
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
)

// specPrograms is the environment variable with the directory of e2e.test, which has the specs, and
// ginkgo.
const specPrograms = "LISTWATCH_E2E"

// processes is the number of specs that run at once. Most of a spec is waiting.
const processes = "4"

// unfit matches the specs that need containers that run, connections from the kube-apiserver to a
// program, or features that are off by default.
const unfit = `(?i)webhook|aggregator|OffByDefault|StorageVersionAPI`

// group matches the specs that run by default.
const group = `\[sig-api-machinery\]`

var focus = flag.String("specs", group, "a regular expression for the names of the specs to run")

// leastSpecs is the least number of specs that must pass directly.
const leastSpecs = 100

// A spec is the outcome of one spec.
type spec struct {
	State string // passed, failed, panicked, …
	Took  time.Duration
	Cause string // empty if it passed
}

// TestSpecsPassThroughARelay runs the specs of sig-api-machinery at the kube-apiserver, and then at
// a relay with the default flags. What passes directly must pass through the relay.
func TestSpecsPassThroughARelay(t *testing.T) {
	testSpecs(t, startNewEtcd)
}

// TestSpecsPassOverOldEtcd does the same with an etcd that is too old to report its progress on
// request.
func TestSpecsPassOverOldEtcd(t *testing.T) {
	testSpecs(t, etcdtest.StartInstalled)
}

// testSpecs compares the outcomes of the specs at both lanes.
func testSpecs(t *testing.T, startEtcd func(testing.TB) string) {
	directory := os.Getenv(specPrograms)
	if directory == "" {
		t.Skip(specPrograms + " names no directory; use make long-e2e")
	}
	outcomes := map[string]map[string]spec{}
	c := startCluster(t, startEtcd)
	for _, lane := range c.lanes {
		t.Run(lane.name, func(t *testing.T) {
			kubeconfig := c.startComponents(t, lane.url)
			outcomes[lane.name] = runSpecs(t, directory, kubeconfig)
		})
	}
	passed := 0
	for name, direct := range outcomes["direct"] {
		relayed := outcomes["relayed"][name]
		state := cmp.Or(relayed.State, "missing")
		if direct.State != "passed" {
			t.Logf("%s: directly %s, relayed %s\n%s", name, direct.State, state, direct.Cause)
			continue
		}
		passed++
		if relayed.State != "passed" {
			t.Errorf("%s passes directly, and is %s through the relay\n%s", name, state, relayed.Cause)
		}
	}
	if *focus == group && passed < leastSpecs {
		t.Errorf("%d specs pass directly, want at least %d", passed, leastSpecs)
	}
}

// runSpecs runs the specs, and returns their outcomes by name.
func runSpecs(t *testing.T, directory, kubeconfig string) map[string]spec {
	t.Helper()
	report := t.TempDir()
	begin := time.Now()
	out, err := exec.CommandContext(t.Context(), filepath.Join(directory, "ginkgo"), "-procs="+processes, "-timeout=1h",
		"-seed=1",
		"-label-filter=!Serial && !Disruptive && !Slow && !Flaky", "-focus="+*focus, "-skip="+unfit,
		"-output-dir="+report, "-json-report=report.json", "-silence-skips", "-no-color",
		filepath.Join(directory, "e2e.test"), "--", "-kubeconfig="+kubeconfig, "-provider=skeleton").CombinedOutput()
	data, readErr := os.ReadFile(filepath.Join(report, "report.json"))
	if readErr != nil {
		t.Fatalf("the specs have written no report: %v: %v\n%s", readErr, err, out[max(0, len(out)-8000):])
	}
	specs := parse(t, data)
	if len(specs) == 0 {
		t.Fatalf("no spec has run: %v\n%s", err, out[max(0, len(out)-8000):])
	}
	passed := 0
	for _, s := range specs {
		if s.State == "passed" {
			passed++
		}
	}
	t.Logf("%d of %d specs pass in %v", passed, len(specs), time.Since(begin).Round(time.Second))
	for _, name := range slowest(specs, 5) {
		t.Logf("%v: %s", specs[name].Took.Round(100*time.Millisecond), name)
	}
	return specs
}

// parse returns the outcomes in a report of ginkgo by the names of the specs.
func parse(t *testing.T, report []byte) map[string]spec {
	t.Helper()
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeText            string
			LeafNodeType            string
			State                   string
			RunTime                 time.Duration
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(report, &suites); err != nil {
		t.Fatal(err)
	}
	specs := map[string]spec{}
	for _, suite := range suites {
		for _, r := range suite.SpecReports {
			if r.State == "skipped" || r.State == "pending" {
				continue
			}
			name := strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " ")
			if r.LeafNodeType != "It" {
				if r.State != "passed" {
					t.Fatalf("%s is %s: %s", r.LeafNodeType, r.State, r.Failure.Message)
				}
				continue
			}
			specs[name] = spec{r.State, r.RunTime, r.Failure.Message}
		}
	}
	return specs
}

// slowest returns the names of the n specs that took longest.
func slowest(specs map[string]spec, n int) []string {
	names := slices.SortedFunc(maps.Keys(specs),
		func(a, b string) int { return cmp.Compare(specs[b].Took, specs[a].Took) })
	return names[:min(n, len(names))]
}
