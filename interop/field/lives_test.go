//go:build !race

package field

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A step is a request. NAME in its path and body stands for a name that is different for each
// endpoint. The method AWAIT repeats a GET until query is the status or a string in the response.
// The method STATUS is a GET of which only the status is compared.
type step struct{ method, path, contentType, body, query string }

const (
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
	podBody    = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	jobSpec    = `{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}`
)

func jobPath(name string) string {
	return strings.TrimSuffix("/apis/batch/v1/namespaces/NAME/jobs/"+name, "/")
}

func cronJobPath(name string) string {
	return strings.TrimSuffix("/apis/batch/v1/namespaces/NAME/cronjobs/"+name, "/")
}

func widgetPath(name string) string {
	return strings.TrimSuffix("/apis/NAME.example.com/v1/namespaces/NAME/widgets/"+name, "/")
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

const widgetDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.NAME.example.com"},
 "spec":{"group":"NAME.example.com","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets"},
 "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
 "properties":{"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],
 "items":{"type":"object","required":["port"],"properties":{"port":{"type":"integer"},"protocol":{"type":"string","default":"TCP"}}}}}}}}}}]}}`

// lives are the lives of objects whose responses are compared.
var lives = map[string][]step{
	"jobs": {
		{"POST", "/api/v1/namespaces", "", `{"metadata":{"name":"NAME"}}`, ""},
		{"POST", jobPath(""), "", `{"metadata":{"name":"j"},"spec":` + jobSpec + `}`, ""},
		{"GET", jobPath("j"), "", "", ""},
		{"PATCH", jobPath("j"), mergePatch, `{"metadata":{"annotations":{"a":"b"}}}`, ""},
		{"PATCH", jobPath("j"), mergePatch, `{"spec":{"parallelism":3}}`, ""},
		{"GET", jobPath(""), "", "", ""},
		{"DELETE", jobPath("j"), "", "", ""}, // the pods are preserved by default
		{"GET", jobPath("j"), "", "", ""},
		{"POST", jobPath(""), "", `{"metadata":{"name":"k"},"spec":` + jobSpec + `}`, ""},
		{"DELETE", jobPath("k"), "", `{"propagationPolicy":"Foreground"}`, ""},
		{"DELETE", jobPath("k"), "", `{"propagationPolicy":"Background"}`, ""},
		{"POST", jobPath(""), "", `{"metadata":{"name":"l"},"spec":` + jobSpec + `}`, ""},
		{"DELETE", jobPath(""), "", "", ""},
		{"GET", jobPath(""), "", "", ""},
		{
			"POST", cronJobPath(""), "",
			`{"metadata":{"name":"c"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":` + jobSpec + `}}}`, "",
		},
		{"PATCH", cronJobPath("c"), mergePatch, `{"spec":{"suspend":true}}`, ""},
		{
			"PATCH", cronJobPath("c") + "/status", mergePatch,
			`{"status":{"lastScheduleTime":"2026-01-02T03:04:05Z"}}`, "",
		},
		{"PATCH", cronJobPath("c"), mergePatch, `{"spec":{"schedule":"no schedule"}}`, ""},
		{"GET", cronJobPath(""), "", "", ""},
		{"DELETE", cronJobPath("c"), "", "", ""},
		{"GET", cronJobPath(""), "", "", ""},
		{"POST", "/api/v1/namespaces/NAME/pods", "", podBody, ""},
		{"GET", "/api/v1/namespaces/NAME/pods", "", "", "fieldSelector=spec.hostNetwork%3Dfalse"},
		{"PUT", "/api/v1/namespaces/NAME/pods/p", "", podBody, ""},
		{"DELETE", "/api/v1/namespaces/NAME/pods/p", "", "", "gracePeriodSeconds=0"},
		{"GET", "/api/v1/namespaces/NAME/pods", "", "", ""},
		{"DELETE", "/api/v1/namespaces/NAME", "", "", ""},
		{"GET", "/api/v1/namespaces/NAME", "", "", ""},
		{"POST", "/api/v1/namespaces/NAME/pods", "", podBody, ""},
		{"DELETE", "/api/v1/namespaces/default", "", "", ""},
	},
	"owners": {
		{"POST", "/api/v1/namespaces", "", `{"metadata":{"name":"NAME"}}`, ""},
		{
			"POST", "/api/v1/namespaces/NAME/configmaps", "",
			`{"metadata":{"name":"a","finalizers":["example.com/held"]}}`, "",
		},
		{"DELETE", "/api/v1/namespaces/NAME/configmaps/a", "", `{"propagationPolicy":"Foreground"}`, ""},
		{"DELETE", "/api/v1/namespaces/NAME/configmaps/a", "", `{"propagationPolicy":"Orphan"}`, ""},
		{"GET", "/api/v1/namespaces/NAME/configmaps", "", "", ""},
		{
			"PATCH", "/api/v1/namespaces/NAME/configmaps/a", mergePatch,
			`{"metadata":{"finalizers":["example.com/other"]}}`, "",
		},
		{"PATCH", "/api/v1/namespaces/NAME/configmaps/a", mergePatch, `{"metadata":{"finalizers":null}}`, ""},
		{"GET", "/api/v1/namespaces/NAME/configmaps/a", "", "", ""},
		{"GET", "/api/v1/namespaces/NAME/configmaps", "", "", ""},
		{"DELETE", "/api/v1/namespaces/NAME/configmaps/a", "", `{"preconditions":{"uid":"other"}}`, ""},
	},
	"definitions": {
		{"POST", "/api/v1/namespaces", "", `{"metadata":{"name":"NAME"}}`, ""},
		{"POST", definitionsPath, "", widgetDefinition, ""},
		{"AWAIT", widgetPath(""), "", "", "200"},
		{
			"PATCH", widgetPath("w"), applyPatch,
			`{"apiVersion":"NAME.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"ports":[{"port":80}]}}`, "fieldManager=m",
		},
		{
			"PATCH", widgetPath("w"), applyPatch,
			`{"apiVersion":"NAME.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"ports":[{"port":80}]}}`, "fieldManager=m",
		},
		{"GET", widgetPath(""), "", "", ""},
		{"PATCH", widgetPath("w"), mergePatch, `{"metadata":{"finalizers":["example.com/held"]}}`, ""},
		{"PATCH", definitionsPath + "/widgets.NAME.example.com", mergePatch, `{"spec":{"scope":"Cluster"}}`, ""},
		{"DELETE", definitionsPath + "/widgets.NAME.example.com", "", "", ""},
		{"AWAIT", widgetPath("w"), "", "", "deletionTimestamp"},
		{
			"POST", widgetPath(""), "",
			`{"apiVersion":"NAME.example.com/v1","kind":"Widget","metadata":{"name":"late"}}`, "",
		},
		{"GET", widgetPath(""), "", "", ""},
		{"PATCH", widgetPath("w"), mergePatch, `{"metadata":{"finalizers":null}}`, ""},
		{"AWAIT", widgetPath(""), "", "", "404"},
		{"STATUS", widgetPath(""), "", "", ""},
		{"STATUS", widgetPath(""), "", "", ""},
		{"AWAIT", definitionsPath + "/widgets.NAME.example.com", "", "", "404"},
	},
}

// testLives leads objects through their lives directly and through the relay. Each request must
// have the same response.
func (c *cluster) testLives(t *testing.T) {
	stop := c.startWriter(t)
	defer stop()
	for what, steps := range lives {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for i, s := range steps {
				var answers [2]string
				for n, e := range []*endpoint{c.direct, c.relayed} {
					answers[n] = e.perform(t, s, fmt.Sprint(what, "-", n))
				}
				if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
					t.Errorf("step %d, %s %s: (-direct +relayed)\n%s", i, s.method, s.path, diff)
				}
			}
		})
	}
}

// perform performs a step in the namespace name. It returns the status and the response, without
// the members that differ between two lives.
func (e *endpoint) perform(t *testing.T, s step, name string) string {
	t.Helper()
	fill := strings.NewReplacer("NAME", name).Replace
	if s.method == "AWAIT" {
		return e.await(t, fill(s.path), s.query)
	}
	query, err := url.ParseQuery(s.query)
	if err != nil {
		t.Fatal(err)
	}
	contentType := s.contentType
	if contentType == "" && s.body != "" {
		contentType = "application/json"
	}
	method := s.method
	if method == "STATUS" {
		method = http.MethodGet
	}
	r := e.send(t, method, fill(s.path), query, contentType, fill(s.body))
	if s.method == "STATUS" {
		return fmt.Sprint(r.code)
	}
	o := withTypes(decode(t, r.body))
	forget(o)
	text, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprint(r.code, " ", strings.ReplaceAll(string(text), name, "NAME"))
}

// await requests an object or a list until want is the status or a string in the response.
func (e *endpoint) await(t *testing.T, path, want string) string {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); <-tick.C {
		r := e.get(t, path, nil)
		if fmt.Sprint(r.code) == want || r.code == http.StatusOK && strings.Contains(string(r.body), `"`+want+`"`) {
			return "reached " + want
		}
	}
	return "never reached " + want
}

// forget removes members that differ between two lives of an object.
func forget(value any) {
	switch value := value.(type) {
	case object:
		for _, name := range []string{
			"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
			"managedFields", "time", "lastTransitionTime", "batch.kubernetes.io/controller-uid", "controller-uid",
		} {
			delete(value, name)
		}
		for _, member := range value {
			forget(member)
		}
	case []any:
		for _, element := range value {
			forget(element)
		}
	}
}

// refusedWrites is the number of writes that the kube-apiserver refuses before it has read them.
const refusedWrites = 10000

// testRefusedWrites sends writes that are refused early, over HTTP/2. Each must have a response.
func (c *cluster) testRefusedWrites(t *testing.T) {
	body := `{"metadata":{"name":"x"},"data":{"x":"` + strings.Repeat("x", 20000) + `"}}`
	var n sync.WaitGroup
	for range 8 {
		n.Go(func() {
			for i := range refusedWrites / 8 {
				path, contentType := "/apis/nothing.example.com/v1/widgets", "application/json"
				if i%2 == 0 {
					path, contentType = "/api/v1/namespaces/default/configmaps", "text/plain"
				}
				r := c.relayed.send(t, http.MethodPost, path, nil, contentType, body)
				if r.code != http.StatusNotFound && r.code != http.StatusUnsupportedMediaType {
					t.Errorf("POST %s: got status %d", path, r.code)
				}
				if r.proto != "HTTP/2.0" {
					t.Errorf("POST %s: got a response over %s", path, r.proto)
				}
			}
		})
	}
	n.Wait()
}
