package clients

import (
	"strings"
	"testing"
)

func TestKubectlDiscoversResources(t *testing.T) {
	t.Parallel()
	u := startWithObjects(t)
	u.wantOutput("apps/v1\nauthorization.k8s.io/v1\ndemo.example.com/v1\nv1\n", "api-versions")
	u.wantTable([]string{
		"NAME SHORTNAMES APIVERSION NAMESPACED KIND", "configmaps cm v1 true ConfigMap", "events ev v1 true Event",
		"namespaces ns v1 false Namespace",
		"pods po v1 true Pod", "services svc v1 true Service", "deployments deploy apps/v1 true Deployment",
		"selfsubjectaccessreviews authorization.k8s.io/v1 false SelfSubjectAccessReview",
		"selfsubjectrulesreviews authorization.k8s.io/v1 false SelfSubjectRulesReview",
		"gadgets demo.example.com/v1 false Gadget", "widgets demo.example.com/v1 true Widget",
	}, "api-resources")
	// kubectl version fails, because this build of kubectl contains no version number, but still
	// prints the server's version.
	out, _, _ := u.try("", "version", "-o", "json")
	if !strings.Contains(out, `"serverVersion": {`) || !strings.Contains(out, "+listwatch") {
		t.Errorf("got %s, want the server's version", out)
	}
	for args, want := range map[string][]string{
		"explain pods":                {"KIND:       Pod\nVERSION:    v1\n", "  metadata\t<ObjectMeta>", "  spec\t"},
		"explain widgets":             {"GROUP:      demo.example.com\nKIND:       Widget\n", "  spec\t<Object>"},
		"explain widgets --recursive": {"    finalizers\t<[]string>", "    name\t<string>"},
	} {
		got := u.run(strings.Fields(args)...)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("kubectl %s: got\n%swant it to contain %q", args, got, w)
			}
		}
	}
}

func TestKubectlDescribe(t *testing.T) {
	t.Parallel()
	s, u := startForKubectl(t)
	createInStore(t, s, "pods", "default", runningPod)
	createInStore(t, s, "deployments", "default", deploymentJSON)
	createInStore(t, s, "configmaps", "default", `{"metadata":{"name":"conf"},"data":{"a":"b"}}`)
	createInStore(t, s, "widgets", "default", `{"metadata":{"name":"w1"},"spec":{"size":3}}`)
	createInStore(t, s, "services", "default", `{"metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}}`)
	createInStore(t, s, "namespaces", "", `{"metadata":{"name":"n1"}}`)
	uid := u.run("get", "pod", "web-1", "-o", "jsonpath={.metadata.uid}")
	createInStore(t, s, "events", "default",
		`{"metadata":{"name":"e1"},"type":"Normal","reason":"Started","message":"it runs","count":1,`+
			`"involvedObject":{"kind":"Pod","namespace":"default","name":"web-1","uid":"`+uid+
			`"},"source":{"component":"me"}}`)
	got := u.run("describe", "--show-events=true", "pod/web-1", "deploy/web", "cm/conf", "widget/w1", "svc/web",
		"ns/n1")
	for what, want := range map[string][]string{
		"pod web-1": {"Name:         web-1\n", "Status:       Running\n", "it runs"},
		"deploy web": {
			"Replicas:           2 desired | 0 updated | 0 total | 0 available | 0 unavailable\n",
			"Events:            <none>\n",
		},
		"cm conf":   {"Data\n====\na:\n----\nb\n", "Events:  <none>\n"},
		"widget w1": {"Spec:\n  Size:  3\n", "Events:  <none>\n"},
		"svc web":   {"Name:", "Events:"},
		"ns n1":     {"Name:         n1\n"},
	} {
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("describe: got\n%swant it to contain %q for %s", got, w, what)
			}
		}
	}
	u.wantTable([]string{"NAME LAST SEEN TYPE REASON OBJECT MESSAGE", "e1 AGE Normal Started pod/web-1 it runs"}, "get",
		"events")
}
