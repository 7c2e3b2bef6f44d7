package kubetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// A hook is a webhook that records its requests.
type hook struct {
	mu       sync.Mutex
	requests []*admissionv1.AdmissionRequest // guarded by mu
}

// calls returns the operations, resources and names of the requests since the last call.
func (h *hook) calls() (calls []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.requests {
		resource := r.Resource.Resource
		if r.SubResource != "" {
			resource += "/" + r.SubResource
		}
		calls = append(calls, fmt.Sprint(r.Operation, " ", resource, " ", r.Name))
	}
	h.requests = nil
	return calls
}

// An answerer fills in the response to a request.
type answerer func(context.Context, *admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse)

// serve makes the handler of path respond as answer does.
func (h *hook) serve(c *cluster, path string, answer answerer) {
	c.WebhookMux().HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h.mu.Lock()
		h.requests = append(h.requests, review.Request)
		h.mu.Unlock()
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		answer(r.Context(), review.Request, review.Response)
		_ = json.NewEncoder(w).Encode(review)
	})
}

func allow(context.Context, *admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse) {}

func refuse(_ context.Context, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
	r.Allowed, r.Result = false, &metav1.Status{Message: "no"}
}

func fail(context.Context, *admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse) {
	panic("oops")
}

func wait(ctx context.Context, _ *admissionv1.AdmissionRequest, _ *admissionv1.AdmissionResponse) {
	<-ctx.Done()
}

// configure creates a configuration of webhooks in YAML. The webhooks have no name, client
// configuration, and review versions.
func (c *cluster) configure(t *testing.T, name, webhooks string) {
	t.Helper()
	for i, part := range strings.Split(webhooks, "\n---\n") {
		var w map[string]any
		if err := yaml.Unmarshal([]byte(part), &w); err != nil {
			t.Fatal(err)
		}
		kind, path := "ValidatingWebhookConfiguration", w["path"]
		if _, ok := w["reinvocationPolicy"]; ok {
			kind = "MutatingWebhookConfiguration"
		}
		delete(w, "path")
		for key, value := range map[string]any{
			"name": fmt.Sprint("w", i, ".example.com"), "admissionReviewVersions": []string{"v1"},
			"clientConfig": map[string]any{
				"caBundle": "Cg==", "service": map[string]any{"namespace": "system", "name": "webhooks", "path": path},
			},
		} {
			w[key] = value
		}
		if w["sideEffects"] == nil {
			w["sideEffects"] = "None"
		}
		object := testkit.Must(json.Marshal(map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
			"metadata": map[string]any{"name": fmt.Sprint(name, i)}, "webhooks": []any{w},
		}))(t)
		resource := "/apis/admissionregistration.k8s.io/v1/" + strings.ToLower(kind) + "s"
		if err := c.CoreV1().RESTClient().Post().AbsPath(resource).Body(object).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
}

// ofConfigMaps are the rules of a webhook for config maps.
const ofConfigMaps = `
rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}]
`

func TestValidatingWebhooksDecide(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var h hook
		h.serve(c, "/refuse", refuse)
		c.createConfigMap(t, named("old"))
		c.configure(t, "v", "path: /refuse"+ofConfigMaps)
		api := c.CoreV1().ConfigMaps("default")
		_, err := api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named("a")}, metav1.CreateOptions{})
		const want = `admission webhook "w0.example.com" denied the request: no`
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		patch := []byte(`{"data":{"a":"b"}}`)
		if _, err := api.Patch(t.Context(), "old", types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
			t.Error("the webhook did not decide on a patch")
		}
		if err := api.Delete(t.Context(), "old", metav1.DeleteOptions{}); err == nil || err.Error() != want {
			t.Errorf("got %v for a delete, want %s", err, want)
		}
		if err := api.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err == nil {
			t.Error("the webhook did not decide on a delete of a collection")
		}
		if got := c.configMaps(t); !slices.Equal(got, []string{"old"}) {
			t.Errorf("got %q, want only the object that the webhook has not seen", got)
		}
		calls := []string{
			"CREATE configmaps a", "UPDATE configmaps old", "DELETE configmaps old", "DELETE configmaps ",
		}
		if got := h.calls(); !slices.Equal(got, calls) {
			t.Errorf("got the calls %q, want %q", got, calls)
		}
	})
}

// set returns a webhook that sets a label to the label's value and a suffix.
func set(label, suffix string) answerer {
	return func(_ context.Context, q *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
		var o metav1.PartialObjectMetadata
		if q.Operation == admissionv1.Delete || json.Unmarshal(q.Object.Raw, &o) != nil {
			return
		}
		jsonPatch := admissionv1.PatchTypeJSONPatch
		r.PatchType, r.Patch = &jsonPatch, fmt.Appendf(nil, `[{"op":"add","path":"/metadata/labels/%s","value":"%s"}]`,
			label, o.Labels[label]+suffix)
	}
}

// TestMutatingWebhooksRunInOrder checks that a webhook is called again if another one has changed
// the object, and that validating webhooks see the result.
func TestMutatingWebhooksRunInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var first, second, last hook
		first.serve(c, "/first", set("x", "a"))
		second.serve(c, "/second", set("x", "b"))
		last.serve(c, "/last", allow)
		c.configure(t, "m", "path: /first\nreinvocationPolicy: IfNeeded"+ofConfigMaps+
			"\n---\npath: /second\nreinvocationPolicy: Never"+ofConfigMaps+"\n---\npath: /last"+ofConfigMaps)
		m := named("a")
		m.Labels = map[string]string{"x": ""}
		o := c.createConfigMap(t, m)
		if o.Labels["x"] != "aba" || len(first.calls()) != 2 || len(second.calls()) != 1 {
			t.Errorf("got %v, want the first webhook twice", o.Labels)
		}
		last.mu.Lock()
		defer last.mu.Unlock()
		if len(last.requests) != 1 || !strings.Contains(string(last.requests[0].Object.Raw), `"x":"aba"`) {
			t.Errorf("got %v, want a validation of the last state", last.requests)
		}
	})
}

func TestWebhooksSelectRequests(t *testing.T) {
	for name, test := range map[string]struct {
		webhook string
		calls   int
	}{
		"rules":              {"", 1},
		"object selector":    {"objectSelector: {matchLabels: {a: b}}", 0},
		"namespace selector": {"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}", 0},
		"namespace":          {"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}", 1},
		"condition":          {"matchConditions: [{name: c, expression: 'object.metadata.name == \"b\"'}]", 0},
		"user":               {"matchConditions: [{name: c, expression: 'request.userInfo.username == \"admin\"'}]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				var h hook
				h.serve(c, "/hook", allow)
				c.configure(t, "v", "path: /hook\n"+test.webhook+ofConfigMaps)
				c.createConfigMap(t, named("a"))
				if got := h.calls(); len(got) != test.calls {
					t.Errorf("got the calls %q, want %d", got, test.calls)
				}
			})
		})
	}
}

func TestFailedCallsFollowTheFailurePolicy(t *testing.T) {
	for name, test := range map[string]struct{ webhook, err string }{
		"no handler":  {"path: /none", "the mux of Env.WebhookMux has no handler for /none"},
		"ignored":     {"path: /none\nfailurePolicy: Ignore", ""},
		"timeout":     {"path: /slow\ntimeoutSeconds: 3", "context deadline exceeded"},
		"panic":       {"path: /panic", "the handler of /panic has panicked: oops"},
		"not invalid": {"path: /refuse", "denied the request: no"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				var h hook
				h.serve(c, "/refuse", refuse)
				h.serve(c, "/panic", fail)
				h.serve(c, "/slow", wait)
				c.configure(t, "v", test.webhook+ofConfigMaps)
				start := time.Now()
				o := &corev1.ConfigMap{ObjectMeta: named("a")}
				_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), o,
					metav1.CreateOptions{DryRun: []string{"All"}})
				if fmt.Sprint(err) != "<nil>" && test.err == "" || !strings.Contains(fmt.Sprint(err), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
				if name == "timeout" && time.Since(start) != 3*time.Second {
					t.Errorf("the call took %v, want 3s", time.Since(start))
				}
			})
		})
	}
}

// TestWebhooksSeeInternalDeletes checks that the deletes of the garbage collection and of the
// namespace controller pass through webhooks, with the users that they have in a cluster.
func TestWebhooksSeeInternalDeletes(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var h hook
		h.serve(c, "/hook", allow)
		a := c.createConfigMap(t, named("a"))
		c.createConfigMap(t, named("b", ownedBy(a)))
		c.configure(t, "v", "path: /hook"+ofConfigMaps)
		c.deleteConfigMap(t, "a", "")
		c.Settle()
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.requests) != 2 ||
			h.requests[1].UserInfo.Username != "system:serviceaccount:kube-system:generic-garbage-collector" {
			t.Errorf("got %v, want two deletes, the second one by the garbage collector", h.requests)
		}
	})
}

func TestWebhooksAreLoadedFromFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		list := testkit.Must(c.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(),
			metav1.ListOptions{}))(t)
		if len(list.Items) != 1 || *list.Items[0].Webhooks[0].TimeoutSeconds != 10 ||
			*list.Items[0].Webhooks[0].MatchPolicy != registrationv1.Equivalent {
			t.Errorf("got %+v, want the configuration of the file, with defaults", list.Items)
		}
	}, kubetest.Options{Webhooks: []string{"testdata/webhooks"}})
}

// The test below registers the Go type of a custom resource, as suites of kubebuilder do.
func init() {
	scheme.Scheme.AddKnownTypeWithName(widgets.GroupVersion().WithKind("Widget"), &corev1.Pod{})
}

// TestWebhooksIgnoreTypesOfTheTest checks that custom resources reach webhooks as they are stored,
// even if the test has added a type with other members to the scheme of client-go.
func TestWebhooksIgnoreTypesOfTheTest(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var h hook
		h.serve(c, "/allow", allow)
		c.configure(t, "v", `
path: /allow
rules: [{apiGroups: [demo.example.com], apiVersions: [v1], operations: ["*"], resources: [widgets]}]
`)
		testkit.Must(c.widgets().Create(t.Context(), widget(map[string]any{"color": "red"}), metav1.CreateOptions{}))(t)
		if len(h.requests) != 1 || !strings.Contains(string(h.requests[0].Object.Raw), `"color":"red"`) {
			t.Errorf("got the requests %v, want one with the color", h.requests)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}
