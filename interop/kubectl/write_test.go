package kubectl

import (
	"regexp"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

const manifest = `
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

func TestApplyCreatesChangesAndLeavesAlone(t *testing.T) {
	t.Parallel()
	_, u := start(t)
	file := u.file(manifest)
	all := func(what string) string {
		return strings.ReplaceAll("pod/web-1 @\nconfigmap/conf @\nwidget.demo.example.com/w1 @\ndeployment.apps/web @\n", "@", what)
	}
	u.prints(all("created (server dry run)"), "apply", "-f", file, "--dry-run=server")
	u.prints("", "get", "pods,cm,widgets", "-o", "name")
	u.prints(all("created"), "apply", "-f", file)
	u.prints(all("unchanged"), "apply", "-f", file)

	changed := u.file(strings.NewReplacer("tier: front", "tier: back", "a: b", "a: c", "size: 3", "color: red", `"redis:1"`, `"redis:2"`).Replace(manifest))
	out, _, code := u.try("", "diff", "-f", changed)
	if code != 1 || !strings.Contains(out, "-  size: 3\n+  color: red\n") || !strings.Contains(out, "-      - image: redis:1\n+      - image: redis:2\n") {
		t.Errorf("diff: got exit status %d and\n%s", code, out)
	}
	u.prints(all("configured (server dry run)"), "apply", "-f", changed, "--dry-run=server")
	u.prints(all("configured"), "apply", "-f", changed)
	u.prints(all("unchanged"), "apply", "-f", changed)
	u.prints(`{"color":"red"}`, "get", "widget", "w1", "-o", "jsonpath={.spec}")
	u.prints("nginx:1 redis:2", "get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
	u.prints("back", "get", "pod", "web-1", "-o", "jsonpath={.metadata.labels.tier}")
	if _, _, code := u.try("", "diff", "-f", changed); code != 0 {
		t.Errorf("diff of what is applied: got exit status %d", code)
	}

	less := u.file(manifest[:strings.Index(manifest, "---\napiVersion: demo")])
	u.prints("pod/web-1 configured\nconfigmap/conf configured\n", "apply", "-f", less)
	pruned := u.run("apply", "-f", u.file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"), "--prune", "--all", "--prune-allowlist=core/v1/ConfigMap")
	if want := "configmap/other created\nconfigmap/conf pruned\n"; pruned != want {
		t.Errorf("got\n%swant\n%s", pruned, want)
	}
}

func TestWhatIsNotServedIsSaid(t *testing.T) {
	t.Parallel()
	_, u := start(t)
	file := u.file(manifest)
	u.refused("Server-side apply not available on the server", "apply", "-f", file, "--server-side")
	unknown := u.file("apiVersion: demo.example.com/v1\nkind: Nosuch\nmetadata: {name: x}\n")
	u.refused(`no matches for kind "Nosuch" in version "demo.example.com/v1"`, "create", "-f", unknown)
	u.refused(`The Pod "UPPER" is invalid: metadata.name: Invalid value`, "create", "-f", u.file("apiVersion: v1\nkind: Pod\nmetadata: {name: UPPER}\n"))
}

func TestObjectsAreCreated(t *testing.T) {
	t.Parallel()
	_, u := start(t)
	file := u.file(manifest)
	u.run("create", "-f", file)
	u.refused(`Error from server (AlreadyExists): error when creating`, "create", "-f", file)
	u.prints("pod/one created\n", "run", "one", "--image=nginx")
	// These kubectl writes in Protocol Buffers.
	for args, made := range map[string]string{
		"configmap made --from-literal=a=b": "configmap/made", "namespace made": "namespace/made",
		"deployment made --image=nginx": "deployment.apps/made", "service clusterip made --tcp=80:http": "service/made",
	} {
		u.prints(made+" created\n", append([]string{"create"}, strings.Fields(args)...)...)
	}
	u.prints("b nginx http", "get", "cm/made", "deploy/made", "svc/made", "-o",
		"jsonpath={.items[0].data.a} {.items[1].spec.template.spec.containers[0].image} {.items[2].spec.ports[0].targetPort}")
	generated := u.feed("apiVersion: demo.example.com/v1\nkind: Gadget\nmetadata: {generateName: g-}\n", "create", "-f", "-")
	if !regexp.MustCompile(`^gadget.demo.example.com/g-[a-z0-9]{5} created\n$`).MatchString(generated) {
		t.Errorf("got %s", generated)
	}
}

func TestObjectsAreChanged(t *testing.T) {
	t.Parallel()
	_, u := start(t)
	u.run("create", "-f", u.file(manifest))
	for _, c := range []struct{ args, want string }{
		{`patch widget w1 --type=merge -p {"spec":{"size":4}}`, "widget.demo.example.com/w1 patched"},
		{`patch widget w1 --type=merge -p {"spec":{"size":4}}`, "widget.demo.example.com/w1 patched (no change)"},
		{`patch pod web-1 --type=json -p [{"op":"add","path":"/metadata/labels/x","value":"y"}]`, "pod/web-1 patched"},
		{`patch deploy web -p {"spec":{"template":{"spec":{"containers":[{"name":"d","image":"redis:7"}]}}}}`, "deployment.apps/web patched"},
		{`patch deploy web --subresource=status --type=merge -p {"status":{"replicas":1},"spec":{"replicas":9}}`, "deployment.apps/web patched"},
		{`label pod web-1 q=r`, "pod/web-1 labeled"},
		{`label pod web-1 q=s x- --overwrite`, "pod/web-1 modified"},
		{`label widgets --all a=b`, "widget.demo.example.com/w1 labeled"},
	} {
		u.prints(c.want+"\n", strings.Fields(c.args)...)
	}
	u.prints("4", "get", "widget", "w1", "-o", "jsonpath={.spec.size}")
	u.prints("nginx:1 redis:7 2 1", "get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image} {.spec.replicas} {.status.replicas}")
	u.prints(`{"app":"web","q":"s","tier":"front"}`, "get", "pod", "web-1", "-o", "jsonpath={.metadata.labels}")
	u.refused("--overwrite is false", "label", "pod", "web-1", "q=t")

	yaml := u.run("get", "widget", "w1", "-o", "yaml")
	file := u.file(strings.Replace(yaml, "size: 4", "size: 5", 1))
	u.prints("widget.demo.example.com/w1 replaced\n", "replace", "-f", file)
	u.refused("Error from server (Conflict)", "replace", "-f", file)
	u.prints("5", "get", "widget", "w1", "-o", "jsonpath={.spec.size}")
}

func TestAnEditorsChangesAreWritten(t *testing.T) {
	t.Parallel()
	_, u := start(t)
	u.run("create", "-f", u.file(manifest))
	u.editor = "sed -i -e s/size:.3/size:\\ 4/ -e s/nginx:1/nginx:2/"
	u.prints("widget.demo.example.com/w1 edited\n", "edit", "widget", "w1")
	u.prints("deployment.apps/web edited\n", "edit", "deploy", "web")
	u.prints("4", "get", "widget", "w1", "-o", "jsonpath={.spec.size}")
	u.prints("nginx:2", "get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	u.editor = "true"
	if _, says, code := u.try("", "edit", "widget", "w1"); code != 0 || says != "Edit cancelled, no changes made.\n" {
		t.Errorf("got exit status %d and %q of an editor that changes nothing", code, says)
	}
}

func TestObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	s, u := start(t)
	u.run("create", "-f", u.file(manifest))
	put(t, s, "pods", "default", named("a", "Running", `"app":"db"`), named("b", "Running", `"app":"db"`), named("c", "Running", ""))
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
	u.refused(`Error from server (NotFound): pods "web-1" not found`, "delete", "pod", "web-1")
	u.prints("configmap/conf\n", "get", "pods,widgets,deploy,cm", "-o", "name")

	put(t, s, "configmaps", "default", `{"metadata":{"name":"held","finalizers":["demo.example.com/hold"]}}`)
	waits := u.follow("delete", "cm", "held")
	awaitWatches(t, s, 1)
	if o, err := s.Collection("cm").Get(t.Context(), listwatch.Key{Namespace: "default", Name: "held"}); err != nil || !strings.Contains(string(o.Data), "deletionTimestamp") {
		t.Errorf("got %v, %v, want an object that is to go", o, err)
	}
	u.prints("configmap/held patched\n", "patch", "cm", "held", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	waits.ends("configmap \"held\" deleted from default namespace\n")
}
