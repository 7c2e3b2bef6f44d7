package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/testapi"
)

const (
	runningPod = `{"metadata":{"name":"web-1","labels":{"app":"web","tier":"front"}},` +
		`"spec":{"nodeName":"node-a","containers":[{"name":"c","image":"nginx:1"}]},` +
		`"status":{"phase":"Running","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"}],` +
		`"containerStatuses":[{"name":"c","ready":true,"state":{"running":{}}}]}}`
	pendingPod     = `{"metadata":{"name":"web-2","labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx:1"}]}}`
	deploymentJSON = `{"metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},` +
		`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx:1"}]}}}}`
)

// createInStore creates objects without kubectl.
func createInStore(t *testing.T, s *testapi.Server, resource, namespace string, objects ...string) {
	t.Helper()
	for _, o := range objects {
		if _, err := s.Collection(resource).CreateIn(t.Context(), namespace, []byte(o)); err != nil {
			t.Fatal(err)
		}
	}
}

// startWithObjects starts a server with a few objects.
func startWithObjects(t *testing.T) *kubectlUser {
	t.Helper()
	s, u := startForKubectl(t)
	createInStore(t, s, "pods", "default", runningPod, pendingPod)
	createInStore(t, s, "pods", "other", `{"metadata":{"name":"third"}}`)
	createInStore(t, s, "deployments", "default", deploymentJSON)
	createInStore(t, s, "configmaps", "default", `{"metadata":{"name":"conf"},"data":{"a":"b"}}`)
	createInStore(t, s, "widgets", "default", `{"metadata":{"name":"w1"},"spec":{"size":3}}`)
	createInStore(t, s, "gadgets", "", `{"metadata":{"name":"g1"}}`)
	createInStore(t, s, "namespaces", "", `{"metadata":{"name":"other"}}`)
	return u
}

func TestKubectlGetPrintsTables(t *testing.T) {
	t.Parallel()
	u := startWithObjects(t)
	const head, running, pending = "NAME READY STATUS RESTARTS AGE", "web-1 1/1 Running 0 AGE",
		"web-2 0/1 Pending 0 AGE"
	for _, c := range []struct {
		args string
		want []string
	}{
		{"get pods", []string{head, running, pending}},
		{"get po web-2", []string{head, pending}},
		{"get pod/web-1 pod/web-2", []string{head, running, pending}},
		{
			"get pods web-1 -o wide",
			[]string{head + " IP NODE NOMINATED NODE READINESS GATES", running + " 10.0.0.1 node-a <none> <none>"},
		},
		{"get pods -A", []string{
			"NAMESPACE " + head, "default " + running, "default " + pending,
			"other third 0/0 Pending 0 AGE",
		}},
		{"get pods -l tier=front", []string{head, running}},
		{"get pods -A -l app in (web)", []string{"NAMESPACE " + head, "default " + running, "default " + pending}},
		{"get pods --field-selector metadata.name=web-2", []string{head, pending}},
		{"get pods --field-selector status.phase=Running,spec.nodeName!=node-b", []string{head, running}},
		{"get pods --show-labels", []string{head + " LABELS", running + " app=web,tier=front", pending + " app=web"}},
		{"get pods -L tier", []string{head + " TIER", running + " front", pending}},
		{"get pods --sort-by=.spec.nodeName", []string{head, pending, running}},
		{"get widget.demo.example.com w1", []string{"NAME AGE", "w1 AGE"}},
		{"get cm,gadgets,ns", []string{
			"NAME DATA AGE", "configmap/conf 1 AGE", "", "NAME AGE", "gadget.demo.example.com/g1 AGE", "",
			"NAME STATUS AGE", "namespace/other Active AGE",
		}},
		{"get all", []string{
			head, "pod/" + running, "pod/" + pending, "", "NAME READY UP-TO-DATE AVAILABLE AGE",
			"deployment.apps/web 0/2 0 0 AGE",
		}},
		{"get deploy web --subresource=scale", []string{"NAME DESIRED AVAILABLE AGE", "web 2 0 AGE"}},
	} {
		u.wantTable(c.want, splitArguments(c.args)...)
	}
	if _, stderr, code := u.try("", "get", "pods", "-n", "empty"); code != 0 ||
		stderr != "No resources found in empty namespace.\n" {
		t.Errorf("got exit status %d and %q for an empty namespace", code, stderr)
	}
}

// splitArguments splits line at spaces, except in selectors like "app in (web)".
func splitArguments(line string) []string {
	line = strings.ReplaceAll(line, " in (", "\x00in\x00(")
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "\x00", " ")
	}
	return args
}

func TestKubectlGetPrintsOtherFormats(t *testing.T) {
	t.Parallel()
	u := startWithObjects(t)
	u.wantOutput("pod/web-1\npod/web-2\n", "get", "pods", "-o", "name")
	u.wantOutput("widget.demo.example.com/w1\n", "get", "widgets", "-o", "name")
	u.wantOutput("web-1 web-2", "get", "pods", "-o", "jsonpath={.items[*].metadata.name}")
	u.wantOutput("3", "get", "widget", "w1", "-o", "jsonpath={.spec.size}")
	u.wantTable([]string{"POD NODE", "web-1 node-a", "web-2 <none>"}, "get", "pods", "-o",
		"custom-columns=POD:.metadata.name,NODE:.spec.nodeName")
	u.wantOutput("web-1.web-2.", "get", "pods", "-o", "go-template={{range .items}}{{.metadata.name}}.{{end}}")
	yaml := u.run("get", "widget", "w1", "-o", "yaml")
	for _, line := range []string{
		"apiVersion: demo.example.com/v1\nkind: Widget\nmetadata:\n",
		"\n  generation: 1\n  name: w1\n  namespace: default\n  resourceVersion: ", "\nspec:\n  size: 3\n",
	} {
		if !strings.Contains(yaml, line) {
			t.Errorf("got\n%swant it to contain %q", yaml, line)
		}
	}
	json := u.run("get", "pods,cm", "-o", "json")
	if !strings.HasPrefix(json, "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n") ||
		strings.Count(json, `"kind": "Pod"`) != 2 || strings.Count(json, `"kind": "ConfigMap"`) != 1 {
		t.Errorf("got\n%swant a list of two pods and a configmap", json)
	}
	if raw := u.run("get", "--raw", "/api/v1/namespaces/default/pods/web-2"); !strings.HasPrefix(raw,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-2"`) {
		t.Errorf("got %s, want the pod in one line", raw)
	}
	u.wantOutput("ok", "get", "--raw", "/readyz")
}

func TestKubectlGetReportsErrors(t *testing.T) {
	t.Parallel()
	u := startWithObjects(t)
	for args, want := range map[string]string{
		"get pods nosuch": `Error from server (NotFound): pods "nosuch" not found`,
		"get nosuch":      `error: the server doesn't have a resource type "nosuch"`,
		"get pods --field-selector spec.secret=1":  `field label not supported: "spec.secret"`,
		"get --raw /api/v1/nosuch":                 "Error from server (NotFound): the server could not find the requested resource",
		"get pods web-1 --subresource=scale":       `Error from server (NotFound)`,
		"get pods --server http://127.0.0.1:1":     "The connection to the server 127.0.0.1:1 was refused",
		"logs web-1":                               "Error from server (NotFound)",
		"wait --for=delete pod/web-1 --timeout=0s": "condition not met",
	} {
		u.wantFailure(want, strings.Fields(args)...)
	}
}

func TestKubectlReadsLongListsInChunks(t *testing.T) {
	t.Parallel()
	s, u := startForKubectl(t)
	var want []string
	for i := range 2000 {
		name := fmt.Sprintf("cm-%04d", i)
		createInStore(t, s, "configmaps", "default", `{"metadata":{"name":"`+name+`"}}`)
		want = append(want, "configmap/"+name)
	}
	out, trace, _ := u.try("", "get", "cm", "-o", "name", "--chunk-size=300", "-v=6")
	if got := strings.Fields(out); !slices.Equal(got, want) {
		t.Errorf("got %d names, want all 2000 in order", len(got))
	}
	if n := strings.Count(trace, "&limit=300") + strings.Count(trace, "?limit=300"); n != 7 {
		t.Errorf("got %d requests for 2000 objects in chunks of 300, want 7:\n%s", n, trace)
	}
}
