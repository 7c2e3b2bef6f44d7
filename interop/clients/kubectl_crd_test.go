//go:build !race

package clients

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"k8s.io/client-go/rest"
)

// writeDefinitions writes a file of resource definitions that both servers of a comparison read.
// The file contains no CEL rules, because our server does not enforce them, and no embedded
// resources, because our server cannot explain their fields.
func writeDefinitions(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "kubeapi", "crd", "testdata", "widgets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "x-kubernetes-validations") && !strings.Contains(line, "- rule:") &&
			!strings.Contains(line, "x-kubernetes-embedded") {
			kept.WriteString(line)
		}
	}
	path := filepath.Join(t.TempDir(), "widgets.yaml")
	if err := os.WriteFile(path, []byte(kept.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// widgetManifest returns a widget with the given lines in its spec.
func widgetManifest(name string, spec ...string) string {
	return "apiVersion: demo.example.com/v1\nkind: Widget\nmetadata: {name: " + name + "}\nspec:\n  size: 1\n  " +
		strings.Join(spec, "\n  ") + "\n"
}

// A step is a kubectl command that wantSame compares. If manifest is not empty, the command reads
// it with -f.
type step struct{ command, manifest string }

// changedLines returns the lines of the output of kubectl diff that differ, without file names.
func changedLines(out string) string {
	var changed strings.Builder
	for line := range strings.Lines(out) {
		if (line[0] == '+' || line[0] == '-') && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "---") {
			changed.WriteString(line)
		}
	}
	return changed.String()
}

// answer runs a step and returns its output and its exit status, without ages and file names.
func (u *kubectlUser) answer(s step) string {
	u.t.Helper()
	var args []string
	for i, word := range strings.Split(s.command, "'") { // words in single quotes are one argument
		if i%2 == 1 {
			args = append(args, word)
		} else {
			args = append(args, strings.Fields(word)...)
		}
	}
	file := ""
	if s.manifest != "" {
		file = u.file(s.manifest)
		args = append(args, "-f", file)
	}
	out, stderr, code := u.try("", args...)
	if args[0] == "diff" {
		out, stderr = changedLines(out), ""
	}
	lines := tableRows(out + stderr)
	slices.Sort(lines) // Kubernetes reports several faults in any order
	rows := strings.Join(lines, "\n")
	if file != "" {
		rows = strings.ReplaceAll(rows, file, "FILE")
	}
	return fmt.Sprintf("%s\nexit status %d", rows, code)
}

// groupsOfReference is the list of API groups at /apis. In a cluster, the aggregator serves this
// list. The reference server has no aggregator, so the proxy of startReference serves the list.
const groupsOfReference = `{"kind":"APIGroupList","apiVersion":"v1","groups":[
  {"name":"apiextensions.k8s.io","versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}],
   "preferredVersion":{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}},
  {"name":"demo.example.com","versions":[{"groupVersion":"demo.example.com/v1","version":"v1"}],
   "preferredVersion":{"groupVersion":"demo.example.com/v1","version":"v1"}}]}`

// startReference starts a Kubernetes API server with the resources of a file, behind a proxy that
// adds the token and the list of API groups.
func startReference(t *testing.T, definitions string) *kubectlUser {
	t.Helper()
	s := apiserver.Start(t)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httpbody.Forward(&httputil.ReverseProxy{
		Transport: testkit.Must(rest.TransportFor(s.Config()))(t),
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, groupsOfReference)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	u := newKubectlUser(t, "--server", front.URL)
	u.run("create", "-f", definitions)
	u.run("wait", patiently, "--for=condition=Established", "crd/widgets.demo.example.com",
		"crd/gadgets.demo.example.com")
	// After a new definition, several controllers of the server act one after the other, so wait
	// for the result of each controller.
	for _, path := range []string{"/apis/demo.example.com/v1", "/openapi/v2", "/openapi/v3/apis/demo.example.com/v1"} {
		awaitContent(t, front.URL+path, "widgets", "gadgets")
	}
	awaitContent(t, front.URL+"/apis/demo.example.com/v1/widgets", "WidgetList")
	awaitContent(t, front.URL+"/apis/demo.example.com/v1/gadgets", "GadgetList")
	return u
}

// awaitContent waits until the response to a GET contains all words.
func awaitContent(t *testing.T, url string, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q in %s", words, url), func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		for _, word := range words {
			if !strings.Contains(string(body), word) {
				return false, err
			}
		}
		return response.StatusCode == http.StatusOK, err
	})
}

// server returns the URL of the user's server.
func (u *kubectlUser) server() string { return u.flags[1] }

// wantSame runs the steps against a Kubernetes API server and against our program. Both must give
// the same answers.
func wantSame(t *testing.T, steps []step) {
	t.Helper()
	if _, err := exec.LookPath("diff"); err != nil {
		testapi.SkipMissing(t, "diff is not installed: %v", err)
	}
	definitions := writeDefinitions(t)
	reference := startReference(t, definitions)
	ours := newKubectlUser(t, "--server", startProgram(t, "--crd", definitions)[0])
	for _, s := range steps {
		if want, got := reference.answer(s), ours.answer(s); got != want {
			t.Errorf("kubectl %s\n%s\nKubernetes:\n%s\nours:\n%s", s.command, s.manifest, want, got)
		}
	}
}

func TestKubectlUsesDefinitionsAsInKubernetes(t *testing.T) {
	t.Parallel()
	wantSame(t, []step{
		{"apply", widgetManifest("one", "color: red", "replicas: 2")},
		{"create", widgetManifest("two", "color: blue")},
		{"get wd", ""},
		{"get widget -o wide", ""},
		{"get toys", ""},
		{"get wd --field-selector spec.color=red", ""},
		{"get wd two -o jsonpath={.spec.color}", ""},
		{"explain wd.spec --recursive", ""},
		{"explain widgets.spec.color", ""},
		{"explain wd.status", ""},
		{"scale wd/one --replicas=3", ""},
		{"scale wd/one --replicas=11", ""},
		{"scale gadgets/none --replicas=1", ""},
		{"get wd one -o wide", ""},
		{"patch wd one --type=merge --subresource=status -p '" +
			`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}` + "'", ""},
		{"get wd one", ""},
		{"apply", widgetManifest("one", "color: green", "replicas: 2")},
		{"apply", widgetManifest("one", "color: pink")},
		{"create", widgetManifest("three", "color: pink", "tags: [a, a]", "name: TOO-LONG")},
		{"create", widgetManifest("three", "colour: red", "color: red")},
		{"create --validate=ignore", widgetManifest("three", "name: 7")},
		{"label wd one a=b", ""},
		{"get wd -l a=b -o name", ""},
		{"delete wd --all", ""},
		{"get wd", ""},
	})
}

func TestKubectlAppliesAsInKubernetes(t *testing.T) {
	t.Parallel()
	const managers = `get wd one --show-managed-fields -o 'jsonpath={range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}'`
	wantSame(t, []step{
		{
			"apply --server-side --field-manager=ada",
			widgetManifest("one", "color: red", "parts: [{id: a, weight: 1}]", "tags: [x]"),
		},
		{managers, ""},
		{
			"apply --server-side --field-manager=ada",
			widgetManifest("one", "color: red", "parts: [{id: a, weight: 1}]", "tags: [x]"),
		},
		{
			"apply --server-side --field-manager=bob",
			widgetManifest("one", "color: red", "parts: [{id: b, weight: 2}]", "tags: [z]"),
		},
		{managers, ""},
		{
			"apply --server-side --field-manager=bob",
			widgetManifest("one", "color: blue", "parts: [{id: a, weight: 2}]"),
		},
		{"diff --server-side --field-manager=bob", widgetManifest("one", "color: blue")},
		{"diff --server-side --field-manager=bob --force-conflicts", widgetManifest("one", "color: blue")},
		{"diff --server-side --field-manager=ada", widgetManifest("one", "color: red", "parts: [{id: a, weight: 5}]")},
		{
			"apply --server-side --field-manager=bob --force-conflicts",
			widgetManifest("one", "color: blue", "parts: [{id: a, weight: 2}]"),
		},
		{managers, ""},
		{"apply --server-side --field-manager=ada", widgetManifest("one", "color: red")},
		{"apply --server-side --field-manager=ada --dry-run=server", widgetManifest("one", "tags: [w]", "color: blue")},
		{"scale wd/one --replicas=4", ""}, // no manager has applied the replicas yet
		{"label wd one a=b", ""},
		{managers, ""},
		{"apply --server-side --field-manager=ada", widgetManifest("one", "color: blue", "replicas: 5")},
		{"scale wd/one --replicas=6", ""},
		{managers, ""},
		{"apply --server-side --field-manager=ada", widgetManifest("one", "color: blue", "replicas: 7")},
		{"apply --server-side --field-manager=ada", widgetManifest("two", "color: pink")},
		{"get wd one -o jsonpath={.spec}", ""},
	})
}
