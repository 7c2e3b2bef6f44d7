package clients

import (
	"regexp"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

const objectManifest = `
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  labels: {app: web, tier: front}
spec:
  containers: [{name: c, image: "nginx:1"}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
data: {a: b}
---
apiVersion: demo.example.com/v1
kind: Widget
metadata:
  name: w1
spec: {size: 3}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "nginx:1"}, {name: d, image: "redis:1"}]}
`

func TestKubectlApply(t *testing.T) {
	t.Parallel()
	_, u := startForKubectl(t)
	file := u.file(objectManifest)
	all := func(what string) string {
		return strings.ReplaceAll(
			"pod/web-1 @\nconfigmap/conf @\nwidget.demo.example.com/w1 @\ndeployment.apps/web @\n", "@", what)
	}
	u.wantOutput(all("created (server dry run)"), "apply", "-f", file, "--dry-run=server")
	u.wantOutput("", "get", "pods,cm,widgets", "-o", "name")
	u.wantOutput(all("created"), "apply", "-f", file)
	u.wantOutput(all("unchanged"), "apply", "-f", file)

	changed := u.file(strings.NewReplacer("tier: front", "tier: back", "a: b", "a: c", "size: 3", "color: red",
		`"redis:1"`, `"redis:2"`).Replace(objectManifest))
	out, _, code := u.try("", "diff", "-f", changed)
	if code != 1 || !strings.Contains(out, "-  size: 3\n+  color: red\n") ||
		!strings.Contains(out, "-      - image: redis:1\n+      - image: redis:2\n") {
		t.Errorf("diff: got exit status %d and\n%s", code, out)
	}
	u.wantOutput(all("configured (server dry run)"), "apply", "-f", changed, "--dry-run=server")
	u.wantOutput(all("configured"), "apply", "-f", changed)
	u.wantOutput(all("unchanged"), "apply", "-f", changed)
	u.wantOutput(`{"color":"red"}`, "get", "widget", "w1", "-o", "jsonpath={.spec}")
	u.wantOutput("nginx:1 redis:2", "get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
	u.wantOutput("back", "get", "pod", "web-1", "-o", "jsonpath={.metadata.labels.tier}")
	if _, _, code := u.try("", "diff", "-f", changed); code != 0 {
		t.Errorf("diff of an applied file: got exit status %d, want 0", code)
	}

	less := u.file(objectManifest[:strings.Index(objectManifest, "---\napiVersion: demo")])
	u.wantOutput("pod/web-1 configured\nconfigmap/conf configured\n", "apply", "-f", less)
	pruned := u.run("apply", "-f", u.file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"), "--prune",
		"--all", "--prune-allowlist=core/v1/ConfigMap")
	if want := "configmap/other created\nconfigmap/conf pruned\n"; pruned != want {
		t.Errorf("got\n%swant\n%s", pruned, want)
	}
}

func TestKubectlReportsUnsupportedRequests(t *testing.T) {
	t.Parallel()
	_, u := startForKubectl(t)
	unknown := u.file("apiVersion: demo.example.com/v1\nkind: Nosuch\nmetadata: {name: x}\n")
	u.wantFailure(`no matches for kind "Nosuch" in version "demo.example.com/v1"`, "create", "-f", unknown)
	u.wantFailure(`The Pod "UPPER" is invalid: metadata.name: Invalid value`, "create", "-f",
		u.file("apiVersion: v1\nkind: Pod\nmetadata: {name: UPPER}\n"))
}

func TestKubectlCreates(t *testing.T) {
	t.Parallel()
	_, u := startForKubectl(t)
	file := u.file(objectManifest)
	u.run("create", "-f", file)
	u.wantFailure(`Error from server (AlreadyExists): error when creating`, "create", "-f", file)
	u.wantOutput("pod/one created\n", "run", "one", "--image=nginx")
	// kubectl writes these objects in Protocol Buffers.
	for args, created := range map[string]string{
		"configmap made --from-literal=a=b": "configmap/made", "namespace made": "namespace/made",
		"deployment made --image=nginx": "deployment.apps/made", "service clusterip made --tcp=80:http": "service/made",
	} {
		u.wantOutput(created+" created\n", append([]string{"create"}, strings.Fields(args)...)...)
	}
	u.wantOutput("b nginx http", "get", "cm/made", "deploy/made", "svc/made", "-o",
		"jsonpath={.items[0].data.a} {.items[1].spec.template.spec.containers[0].image} {.items[2].spec.ports[0].targetPort}")
	generated := u.runWithInput("apiVersion: demo.example.com/v1\nkind: Gadget\nmetadata: {generateName: g-}\n",
		"create", "-f", "-")
	if !regexp.MustCompile(`^gadget.demo.example.com/g-[a-z0-9]{5} created\n$`).MatchString(generated) {
		t.Errorf("got %s, want a gadget with a generated name", generated)
	}
}

func TestKubectlPatchesLabelsAndReplaces(t *testing.T) {
	t.Parallel()
	_, u := startForKubectl(t)
	u.run("create", "-f", u.file(objectManifest))
	for _, c := range []struct{ args, want string }{
		{`patch widget w1 --type=merge -p {"spec":{"size":4}}`, "widget.demo.example.com/w1 patched"},
		{`patch widget w1 --type=merge -p {"spec":{"size":4}}`, "widget.demo.example.com/w1 patched (no change)"},
		{`patch pod web-1 --type=json -p [{"op":"add","path":"/metadata/labels/x","value":"y"}]`, "pod/web-1 patched"},
		{
			`patch deploy web -p {"spec":{"template":{"spec":{"containers":[{"name":"d","image":"redis:7"}]}}}}`,
			"deployment.apps/web patched",
		},
		{
			`patch deploy web --subresource=status --type=merge -p {"status":{"replicas":1},"spec":{"replicas":9}}`,
			"deployment.apps/web patched",
		},
		{`label pod web-1 q=r`, "pod/web-1 labeled"},
		{`label pod web-1 q=s x- --overwrite`, "pod/web-1 modified"},
		{`label widgets --all a=b`, "widget.demo.example.com/w1 labeled"},
	} {
		u.wantOutput(c.want+"\n", strings.Fields(c.args)...)
	}
	u.wantOutput("4", "get", "widget", "w1", "-o", "jsonpath={.spec.size}")
	u.wantOutput("nginx:1 redis:7 2 1", "get", "deploy", "web", "-o",
		"jsonpath={.spec.template.spec.containers[*].image} {.spec.replicas} {.status.replicas}")
	u.wantOutput(`{"app":"web","q":"s","tier":"front"}`, "get", "pod", "web-1", "-o", "jsonpath={.metadata.labels}")
	u.wantFailure("--overwrite is false", "label", "pod", "web-1", "q=t")

	yaml := u.run("get", "widget", "w1", "-o", "yaml")
	file := u.file(strings.Replace(yaml, "size: 4", "size: 5", 1))
	u.wantOutput("widget.demo.example.com/w1 replaced\n", "replace", "-f", file)
	u.wantFailure("Error from server (Conflict)", "replace", "-f", file)
	u.wantOutput("5", "get", "widget", "w1", "-o", "jsonpath={.spec.size}")
}

func TestKubectlEdit(t *testing.T) {
	t.Parallel()
	_, u := startForKubectl(t)
	u.run("create", "-f", u.file(objectManifest))
	u.editor = "sed -i -e s/size:.3/size:\\ 4/ -e s/nginx:1/nginx:2/"
	u.wantOutput("widget.demo.example.com/w1 edited\n", "edit", "widget", "w1")
	u.wantOutput("deployment.apps/web edited\n", "edit", "deploy", "web")
	u.wantOutput("4", "get", "widget", "w1", "-o", "jsonpath={.spec.size}")
	u.wantOutput("nginx:2", "get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	u.editor = "true"
	if _, stderr, code := u.try("", "edit", "widget", "w1"); code != 0 ||
		stderr != "Edit cancelled, no changes made.\n" {
		t.Errorf("got exit status %d and %q after an edit without changes", code, stderr)
	}
}

func TestKubectlDeletes(t *testing.T) {
	t.Parallel()
	s, u := startForKubectl(t)
	u.run("create", "-f", u.file(objectManifest))
	createInStore(t, s, "pods", "default", podWithPhase("a", "Running", `"app":"db"`),
		podWithPhase("b", "Running", `"app":"db"`), podWithPhase("c", "Running", ""))
	for _, c := range []struct{ args, want string }{
		{"delete pod web-1", `pod "web-1" deleted from default namespace`},
		{"delete pod web-1 --ignore-not-found", ""},
		{"delete pods -l app=db", "pod \"a\" deleted from default namespace\npod \"b\" deleted from default namespace"},
		{"delete pods --all", `pod "c" deleted from default namespace`},
		{"delete widget w1 --now", `widget.demo.example.com "w1" deleted from default namespace`},
		{"delete deploy web --cascade=orphan", `deployment.apps "web" deleted from default namespace`},
	} {
		if got := strings.TrimSpace(u.run(strings.Fields(c.args)...)); got != c.want {
			t.Errorf("kubectl %s: got %q, want %q", c.args, got, c.want)
		}
	}
	u.wantFailure(`Error from server (NotFound): pods "web-1" not found`, "delete", "pod", "web-1")
	u.wantOutput("configmap/conf\n", "get", "pods,widgets,deploy,cm", "-o", "name")

	createInStore(t, s, "configmaps", "default", `{"metadata":{"name":"held","finalizers":["demo.example.com/hold"]}}`)
	deletion := u.start("delete", "cm", "held")
	awaitWatches(t, s, 1)
	if o, err := s.Collection("cm").Get(t.Context(), listwatch.Key{Namespace: "default", Name: "held"}); err != nil ||
		!strings.Contains(string(o.Data), "deletionTimestamp") {
		t.Errorf("got %v, %v, want an object with a deletionTimestamp", o, err)
	}
	u.wantOutput("configmap/held patched\n", "patch", "cm", "held", "--type=merge", "-p",
		`{"metadata":{"finalizers":null}}`)
	deletion.waitForExit("configmap \"held\" deleted from default namespace\n")
}
