//go:build !race

package lives

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// labels are field labels of built-in kinds. Each kind has only a few of them.
var labels = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "action", "involvedObject.apiVersion",
	"involvedObject.fieldPath",
	"involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.resourceVersion",
	"involvedObject.uid", "reason", "regarding.apiVersion", "regarding.fieldPath", "regarding.kind", "regarding.name",
	"regarding.namespace", "regarding.resourceVersion", "regarding.uid", "reportingComponent", "reportingController",
	"source", "source.component", "spec.clusterIP", "spec.host", "spec.hostNetwork", "spec.nodeName",
	"spec.replicas", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
	"spec.type", "spec.unschedulable", "status.nominatedNodeName", "status.phase", "status.podIP",
	"status.podIPs", "status.replicas", "status.successful", "type", "spec.color",
}

// values are compared with every label.
var values = []string{
	"", "false", "true", "0", "1", "2", "one", "kubelet", "Pending", "Running", "Active", "10.1.1.1", "selectors",
	"bare", "full",
	"selectors-full", "Opaque", "example.com/full", "ClusterIP", "ExternalName", "None", "Normal", "Pod", "v1",
	"Always", "Never", "other",
	"robot", "default-scheduler", "default", "spec.containers", "A", "example.com/controller", "red",
}

// full holds additional objects by resource. content replaces the usual content of the kind.
var full = map[string][]struct{ name, content, status string }{
	"pods": {
		{
			"full",
			`"spec":{"containers":[{"name":"c","image":"i"}],"hostNetwork":true,"nodeName":"one","restartPolicy":"Never",` +
				`"schedulerName":"other","serviceAccountName":"robot"}`,
			`{"phase":"Running","podIP":"10.1.1.1","podIPs":[{"ip":"10.1.1.1"}]}`,
		},
		{
			"explicit", `"spec":{"containers":[{"name":"c","image":"i"}],"hostNetwork":false}`,
			`{"nominatedNodeName":"one"}`,
		},
	},
	"replicationcontrollers": {{"full", kindOf("replicationcontrollers").content, `{"replicas":2}`}},
	"replicasets":            {{"full", kindOf("replicasets").content, `{"replicas":1}`}},
	"deployments":            {{"full", kindOf("deployments").content, `{"replicas":1}`}},
	"statefulsets":           {{"full", kindOf("statefulsets").content, `{"replicas":1}`}},
	"jobs":                   {{"full", kindOf("jobs").content, `{"succeeded":1}`}},
	"secrets":                {{"full", `"type":"example.com/full"`, ""}},
	"nodes":                  {{"full", `"spec":{"unschedulable":true}`, ""}},
	"services": {
		{"headless", `"spec":{"clusterIP":"None","ports":[{"port":80}]}`, ""},
		{"external", `"spec":{"type":"ExternalName","externalName":"example.com"}`, ""},
	},
	"events": {
		{
			"full",
			`"involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"selectors","name":"full","uid":"1","resourceVersion":"2",` +
				`"fieldPath":"spec.containers"},"reason":"A","type":"Normal","source":{"component":"kubelet","host":"one"}`, "",
		},
		{
			"reported",
			`"involvedObject":{"namespace":"selectors"},"reportingComponent":"kubelet","reportingInstance":"one"`, "",
		},
	},
}

// newEvents is the kind of the events of events.k8s.io. Both groups have the same events.
var newEvents = kind{
	"events.k8s.io", "v1", "events", "Event", false,
	`"eventTime":"2026-01-02T03:04:05.678901Z","reportingController":"example.com/controller","reportingInstance":"one","action":"A",` +
		`"reason":"A","type":"Normal","regarding":{"apiVersion":"v1","kind":"Pod","namespace":"NAME","name":"full"}`, "", "",
}

// hasAddress reports whether the selected value is the address that a cluster assigns to a service.
// kubetest assigns none.
func hasAddress(k kind, label, name string) bool {
	return k.plural == "services" && label == "spec.clusterIP" && name == "bare"
}

// testFieldSelectors compares the field labels of every kind, and the objects that they select.
func (c *comparison) testFieldSelectors(t *testing.T) {
	all := append(slices.Clone(kinds), newEvents)
	for _, s := range []*side{c.kubernetes, c.ours} {
		s.must(t, step{method: http.MethodPost, path: "/api/v1/namespaces", body: `{"metadata":{"name":"selectors"}}`})
		for _, k := range all {
			if k.kind != "CustomResourceDefinition" {
				s.createSelected(t, k)
			}
		}
	}
	supported := 0
	for _, k := range all {
		for _, label := range labels {
			want, wantCode := c.kubernetes.selected(t, k, label+"=x")
			got, gotCode := c.ours.selected(t, k, label+"=x")
			if gotCode != wantCode || !slices.Equal(got, want) {
				t.Errorf("%s: %s=x: got %d %q, want %d %q", k.name(), label, gotCode, got, wantCode, want)
			}
			if wantCode != http.StatusOK || gotCode != http.StatusOK {
				continue
			}
			supported++
			for _, value := range values {
				for _, operator := range []string{"=", "!="} {
					selector := label + operator + value
					want, _ := c.kubernetes.selected(t, k, selector)
					got, _ := c.ours.selected(t, k, selector)
					drop := func(name string) bool { return hasAddress(k, label, name) }
					if diff := cmp.Diff(slices.DeleteFunc(want, drop), slices.DeleteFunc(got, drop)); diff != "" {
						t.Errorf("%s: %s: (-Kubernetes +kubetest)\n%s", k.name(), selector, diff)
					}
				}
			}
		}
	}
	t.Logf("%d kinds, %d supported labels", len(all), supported)
}

// createSelected creates the objects of a kind that testFieldSelectors selects.
func (s *side) createSelected(t *testing.T, k kind) {
	t.Helper()
	name := func(short string) string {
		if k.cluster || k.group == newEvents.group {
			return "selectors-" + short // the names of the events of both groups differ
		}
		return short
	}
	s.must(t, step{
		method: http.MethodPost, path: k.path("selectors", ""),
		body: strings.ReplaceAll(k.object(name("bare"), ""), "NAME", "selectors"),
	})
	if k.group == newEvents.group {
		return
	}
	for _, o := range full[k.plural] {
		other := k
		other.content = o.content
		s.must(t, step{method: http.MethodPost, path: k.path("selectors", ""), body: other.object(name(o.name), "")})
		if o.status != "" {
			s.must(t, step{
				method: http.MethodPatch, path: k.path("selectors", name(o.name)) + "/status", contentType: mergePatch,
				body: `{"status":` + o.status + `}`,
			})
		}
	}
}

// selected returns the names of the objects that a field selector selects.
func (s *side) selected(t *testing.T, k kind, selector string) (names []string, code int) {
	t.Helper()
	r, err := s.send(t.Context(),
		step{
			method: http.MethodGet, path: k.path("selectors", ""),
			query: "fieldSelector=" + url.QueryEscape(selector),
		})
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(r.body, &list); err != nil {
		t.Fatal(fmt.Sprint(s.name, ": ", k.name(), ": ", err))
	}
	for _, o := range list.Items {
		if k.plural == "events" && strings.Contains(o.Metadata.Name, ".") {
			continue // the API server reports events of its own about services
		}
		if !k.cluster || belongsTo(o.Metadata.Name, "selectors") {
			names = append(names, o.Metadata.Name)
		}
	}
	slices.Sort(names)
	return names, r.code
}
