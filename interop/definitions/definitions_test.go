//go:build !race

package definitions

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

var which = flag.String("projects", "",
	`the projects to load: "all", or a part of their names; by default the first five`)

const usualProjects = 5

// waitTimeout limits the time until a definition is served. Only failing tests wait that long.
const waitTimeout = 2 * time.Minute

func TestDefinitionsOfTheFieldAreServedAlike(t *testing.T) {
	chosen := projects[:usualProjects]
	if *which != "" {
		chosen = projects
	}
	path := program.Build(t)
	for _, module := range chosen {
		if *which != "" && *which != "all" && !strings.Contains(module, *which) {
			continue
		}
		t.Run(strings.NewReplacer("/", ".").Replace(module), func(t *testing.T) {
			p := read(t, testapi.DownloadModule(t, module))
			if len(p.definitions) == 0 {
				t.Fatal("the module has no definitions")
			}
			p.compare(t, path)
		})
	}
}

// accepted are definitions that kubetest accepts and the reference does not, and the reasons, which
// are in docs/kubetest.md.
var accepted = map[string]string{
	"testcrs.example.com": "kubetest does not validate the defaults in a definition",
}

// isRefused reports whether the outcome of a definition is a refusal. Outcomes are not compared
// further, because kubetest refuses a definition with status 400 and names only one fault.
func isRefused(outcome string) bool {
	return strings.HasPrefix(outcome, "4") || outcome == unknownFields
}

// dropped are kinds whose schemas have objects without properties, by apiVersion and kind. A
// cluster drops the unknown fields of such an object. Another apply of these fields counts as a
// change there, although it changes nothing.
var dropped = []string{"cli.kyverno.io/v1alpha1 ClusterResource", "cli.kyverno.io/v1alpha1 Context"}

// compare loads the definitions and the samples of a project into all servers. path is the path of
// the program listwatch.
func (p project) compare(t *testing.T, path string) {
	reference := newServer(t, "apiextensions-apiserver", apiserver.Start(t).Config())
	// Some samples have owners, which exist only in the cluster that the samples are from. The
	// reference collects no garbage.
	ours := newServer(t, "kubetest", kubetest.New(t, kubetest.Options{NoGarbageCollection: true}).Config())
	resources := map[string]resource{} // by apiVersion and kind
	var served []*unstructured.Unstructured
	for _, d := range p.definitions {
		want, got := reference.define(t, d), ours.define(t, d)
		if accepted[d.GetName()] != "" {
			if isRefused(want) == isRefused(got) {
				t.Errorf("definition %s: kubetest does not differ any more", d.GetName())
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" && !(isRefused(want) && isRefused(got)) {
			t.Errorf("definition %s: (-want +got)\n%s", d.GetName(), diff)
		}
		if strings.HasPrefix(want, "201 Established=True") {
			for _, r := range resourcesOf(d) {
				resources[r.apiVersion()+" "+r.kind] = r
			}
			served = append(served, d)
		}
	}
	serve := startServe(t, path, served)
	var made, refused int
	for _, o := range p.samples {
		kind := o.GetAPIVersion() + " " + o.GetKind()
		r, known := resources[kind]
		if !known {
			continue
		}
		want, got := reference.try(t, r, o), ours.try(t, r, o)
		// If the status of an object has defaults, a cluster writes the object again.
		want.Rewritten = want.Rewritten && got.Rewritten
		if slices.Contains(dropped, kind) {
			want.Second = strings.Replace(want.Second, `"generation": 2`, `"generation": 1`, 1)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("kubetest: %s %s: (-want +got)\n%s", o.GetKind(), o.GetName(), diff)
		}
		if want.Table == "" {
			refused++
			continue
		}
		made++
		// Without CEL and defaults, serve stores another object, but it accepts all that the
		// reference accepts.
		got = serve.try(t, r, o)
		for _, result := range [][2]string{
			{want.Create, got.Create},
			{want.First, got.First},
			{want.Second, got.Second},
		} {
			if strings.HasPrefix(result[0], "20") && !strings.HasPrefix(result[1], "20") {
				t.Errorf("serve: %s %s: got %s", o.GetKind(), o.GetName(), result[1])
			}
		}
	}
	t.Logf("%d definitions, %d samples created, %d refused", len(served), made, refused)
}

// define creates a definition and waits until its conditions are decided. It returns the outcome.
func (s *server) define(t *testing.T, d *unstructured.Unstructured) string {
	t.Helper()
	code, o := s.send(t, http.MethodPost, definitionsPath, asJSON, asJSON, d.Object)
	if code != http.StatusCreated {
		return outcome(code, o)
	}
	conditions := map[string]any{}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, waitTimeout, true,
		func(context.Context) (bool, error) {
			_, o := s.send(t, http.MethodGet, definitionsPath+"/"+d.GetName(), "", asJSON, nil)
			list, _, _ := unstructured.NestedSlice(o, "status", "conditions")
			for _, c := range list {
				condition, _ := c.(map[string]any)
				conditions[fmt.Sprint(condition["type"])] = condition["status"]
			}
			return conditions["Established"] == "True" || conditions["NamesAccepted"] == "False", nil
		})
	if err != nil {
		return fmt.Sprint("not established: ", conditions)
	}
	for _, r := range resourcesOf(d) {
		if conditions["Established"] != "True" {
			break
		}
		path := "/apis/" + r.apiVersion() + "/" + r.plural
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, waitTimeout, true,
			func(context.Context) (bool, error) {
				code, _ := s.send(t, http.MethodGet, path, "", asJSON, nil)
				return code == http.StatusOK, nil
			})
		if err != nil {
			return "established, but not served"
		}
	}
	return fmt.Sprintf("%d Established=%v NamesAccepted=%v", code, conditions["Established"],
		conditions["NamesAccepted"])
}

// startServe runs `listwatch serve --crd` with the definitions until the test ends.
func startServe(t *testing.T, path string, definitions []*unstructured.Unstructured) *server {
	t.Helper()
	args := []string{"serve", "--addr", "127.0.0.1:0"}
	for i, d := range definitions {
		text, err := json.Marshal(d.Object)
		file := filepath.Join(t.TempDir(), fmt.Sprint(i, ".json"))
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--crd", file)
	}
	return newServer(t, "listwatch serve", &rest.Config{Host: program.Start(t, path, args...).URL()})
}
