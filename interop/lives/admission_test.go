//go:build !race

package lives

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestAdmissionActsAsInACluster leads lives under admission webhooks and policies. Both sides call
// the same webhooks, over the network.
func TestAdmissionActsAsInACluster(t *testing.T) {
	c := &comparison{
		kubernetes: startKubernetes(t), ours: startKubetest(t),
		classes: map[string]*class{},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(serveReview))
	defer server.Close()
	c.kubernetes.fill = strings.NewReplacer("HOOKS", server.URL, "BUNDLE", bundle(server))
	c.ours.fill = c.kubernetes.fill
	c.leadAll(t.Context(), admissionLives)
	c.report(t)
}

// bundle returns the certificate of a server, as caBundle of a client.
func bundle(server *httptest.Server) string {
	return string(mustJSON(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// serveReview is a webhook that does what its path says, with the object that it receives.
func serveReview(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q, a := review.Request, &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Response, review.Request = a, nil
	patch := func(operations string) {
		a.Patch, a.PatchType = []byte(operations), new(admissionv1.PatchTypeJSONPatch)
	}
	switch r.URL.Path {
	case "/echo":
		a.Warnings = []string{describe(q)}
	case "/deny":
		a.Allowed, a.Result = false, &metav1.Status{Message: "no"}
	case "/deny-silently":
		a.Allowed = false
	case "/deny-code":
		a.Allowed, a.Result = false, &metav1.Status{Message: "no", Code: 409, Reason: metav1.StatusReasonConflict}
	case "/deny-reason":
		a.Allowed, a.Result = false, &metav1.Status{Message: "no", Reason: metav1.StatusReasonForbidden}
	case "/slow":
		select {
		case <-time.After(5 * time.Second):
		case <-r.Context().Done():
		}
	case "/error":
		http.Error(w, "oops", http.StatusInternalServerError)
		return
	case "/no-response":
		review.Response = nil
	case "/label":
		patch(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)
	case "/append":
		var o metav1.PartialObjectMetadata
		_ = json.Unmarshal(q.Object.Raw, &o) // the API server has encoded it
		patch(fmt.Sprintf(`[{"op":"add","path":"/metadata/labels","value":{"a":%q}}]`, o.Labels["a"]+"c"))
	case "/bad-patch":
		patch(`[{"op":"remove","path":"/metadata/none"}]`)
	case "/color":
		patch(`[{"op":"add","path":"/spec","value":{"color":"purple"}}]`)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(mustJSON(review))
}

// describe describes a request, without the values that a side chooses itself.
func describe(q *admissionv1.AdmissionRequest) string {
	dry := ""
	if q.DryRun != nil && *q.DryRun {
		dry = " dry"
	}
	return fmt.Sprintf("%s%s %s %s %q of %s/%s object %s old %s options %s", q.Operation, dry, q.Kind, q.Resource,
		q.SubResource, q.Namespace, q.Name, content(q.Object), content(q.OldObject), options(q.Options))
}

// content returns the members of an object that both sides determine alike.
func content(raw runtime.RawExtension) string {
	var o struct {
		Kind, APIVersion string
		Metadata         struct {
			Name, Namespace, GenerateName string
			Labels                        map[string]string
			Finalizers                    []string
		}
		Data map[string]string
		Spec any
	}
	if raw.Raw == nil {
		return "none"
	}
	if err := json.Unmarshal(raw.Raw, &o); err != nil {
		return err.Error()
	}
	if o.Kind == "Pod" || o.Kind == "Deployment" {
		o.Spec = nil // kubetest has fewer defaults
	}
	return string(mustJSON(o))
}

func options(raw runtime.RawExtension) string { return string(raw.Raw) }

// webhooks returns a step that creates a configuration of webhooks for requests in the namespace.
// Each webhook has a path, and further members.
func webhooks(kind, resources string, hooks ...[2]string) step {
	var all []string
	for i, h := range hooks {
		more := h[1]
		if more != "" {
			more = "," + more
		}
		all = append(all, fmt.Sprintf(`{"name":"w%d.example.com","clientConfig":{"url":"HOOKS%s","caBundle":BUNDLE},`+
			`"admissionReviewVersions":["v1"],"sideEffects":"None",`+
			`"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"NAME"}},`+
			`"rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":[%s],`+
			`"scope":"Namespaced"}]%s}`,
			i, h[0], resources, more))
	}
	return step{
		verb: "configure", method: http.MethodPost,
		path: "/apis/admissionregistration.k8s.io/v1/" + strings.ToLower(kind) + "webhookconfigurations",
		body: `{"metadata":{"name":"NAME"},"webhooks":[` + strings.Join(all, ",") + `]}`,
	}
}

// configured waits until a probe, which the configuration denies or changes, has the same result.
var configured = step{
	verb: "probe", method: http.MethodPost, path: "/api/v1/namespaces/NAME/secrets", query: "dryRun=All",
	body: `{"metadata":{"name":"probe"}}`, await: true,
}

// probed is the webhook that makes configured wait.
var probed = [2]string{"/deny", matching("request.resource.resource == 'secrets'")}

// matching returns the member of a webhook with a condition.
func matching(expression string) string {
	return `"matchConditions":[{"name":"a","expression":"` + expression + `"}]`
}

// validating returns the steps of a life under validating webhooks.
func validating(resources string, hooks [][2]string, steps ...step) []step {
	return append([]step{webhooks("Validating", withProbe(resources), append(hooks, probed)...), configured}, steps...)
}

// mutating returns the steps of a life under mutating webhooks.
func mutating(resources string, hooks [][2]string, steps ...step) []step {
	return append([]step{webhooks("Mutating", withProbe(resources), append(hooks, probed)...), configured}, steps...)
}

// withProbe adds the resource of the probe to resources, unless these are all.
func withProbe(resources string) string {
	if resources == `"*/*"` {
		return resources
	}
	return resources + `,"secrets"`
}

// notSecrets keeps the probe from a webhook.
var notSecrets = matching("request.resource.resource != 'secrets'")

var admissionLives = map[string][]step{
	"echo-validating": validating(`"*/*"`, [][2]string{{"/echo", notSecrets}}, echoed()...),
	"echo-mutating":   mutating(`"*/*"`, [][2]string{{"/echo", notSecrets}}, echoed()...),
	"deny":            validating(`"configmaps"`, [][2]string{{"/deny", notSecrets}}, writes()...),
	"deny-silently":   validating(`"configmaps"`, [][2]string{{"/deny-silently", notSecrets}}, writes()...),
	"deny-code":       validating(`"configmaps"`, [][2]string{{"/deny-code", notSecrets}}, writes()...),
	"deny-reason":     mutating(`"configmaps"`, [][2]string{{"/deny-reason", notSecrets}}, writes()...),
	"slow":            validating(`"configmaps"`, [][2]string{{"/slow", notSecrets + `,"timeoutSeconds":1`}}, writes()...),
	"slow-ignored": validating(`"configmaps"`,
		[][2]string{{"/slow", notSecrets + `,"timeoutSeconds":1,"failurePolicy":"Ignore"`}}, writes()...),
	"error":       validating(`"configmaps"`, [][2]string{{"/error", notSecrets}}, writes()...),
	"no-response": validating(`"configmaps"`, [][2]string{{"/no-response", notSecrets}}, writes()...),
	"bad-patch":   mutating(`"configmaps"`, [][2]string{{"/bad-patch", notSecrets}}, writes()...),
	"effects": validating(`"configmaps"`, [][2]string{{"/echo", notSecrets}}, slices.Concat(writes(), []step{{
		verb: "create", method: http.MethodPost, path: "/api/v1/namespaces/NAME/configmaps", query: "dryRun=All",
		body: `{"metadata":{"name":"dry"}}`,
	}})...),
	"label": mutating(`"configmaps","widgets"`, [][2]string{
		{"/append", notSecrets + `,"reinvocationPolicy":"IfNeeded"`}, {"/append", notSecrets},
	}, create("configmaps", "a", ""), create("widgets", "w", ""), get("configmaps", "a"),
		patch("widgets", "w", `{"spec":{"color":"red"}}`)),
	"color": mutating(`"widgets"`, [][2]string{{"/color", notSecrets}}, create("widgets", "w", "")),
	"condition": validating(`"configmaps"`, [][2]string{{"/deny", matching("object.metadata.labels.a == 'b'")}},
		create("configmaps", "a", "")),
	"selector": validating(`"configmaps"`, [][2]string{{"/deny", `"objectSelector":{"matchLabels":{"a":"b"}}`}},
		create("configmaps", "a", ""), patch("configmaps", "a", `{"metadata":{"labels":{"a":"b"}}}`),
		create("configmaps", "b", `"labels":{"a":"b"}`)),
	"policies":   policies,
	"equivalent": equivalent(),
}

// equivalent returns a life in which webhooks want another version than that of the requests.
func equivalent() []step {
	steps := mutating(`"things"`, [][2]string{{"/echo", notSecrets}, {"/append", notSecrets}})
	steps[0].body = strings.Replace(steps[0].body, `"apiVersions":["*"]`, `"apiVersions":["v2"]`, 2)
	return slices.Concat(
		[]step{define(strings.Replace(thing(""), versions("v1"), versions("v1", "v2"), 1)), await(getThings)},
		steps, []step{
			createThing("w", ""), thingInV2(createThing("x", "")), patchThing("w", `{"a":"b"}`),
			thingInV2(patchThing("w", `{"a":"c"}`)), getThings, thingInV2(getThings),
		})
}

func init() {
	for name, life := range mutations {
		admissionLives["mutations-"+name] = life
	}
}

// echoed are writes of all forms.
func echoed() []step {
	return []step{
		create("configmaps", "a", ""), patch("configmaps", "a", `{"data":{"a":"c"}}`),
		patch("configmaps", "a", `{"data":{"a":"c"}}`),
		{
			verb: "update", method: http.MethodPut, path: at("configmaps", "a"), query: "fieldManager=m&dryRun=All",
			body: `{"metadata":{"name":"a"},"data":{"x":"y"}}`,
		},
		apply("configmaps", "new", "m", `"data":{"a":"b"}`), apply("configmaps", "new", "m", `"data":{"a":"c"}`),
		create("pods", "p", ""), patch("pods", "p/status", `{"status":{"phase":"Running"}}`),
		{
			verb: "create", method: http.MethodPost, path: at("pods", "p/binding"),
			body: `{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`,
		},
		create("widgets", "w", ""), patch("widgets", "w/status", `{"status":{"replicas":2}}`),
		patch("widgets", "w/scale", `{"spec":{"replicas":3}}`), get("widgets", "w"),
		create("deployments", "d", ""), patch("deployments", "d/scale", `{"spec":{"replicas":3}}`),
		remove("configmaps", "a", `"propagationPolicy":"Orphan"`),
		create("configmaps", "held", held), remove("configmaps", "held", ""),
		patch("configmaps", "held", `{"metadata":{"finalizers":null}}`),
		create("configmaps", "b", ""), removeAll("configmaps", ""),
		{
			verb: "create", method: http.MethodPost, path: "/api/v1/namespaces/NAME/configmaps", query: "dryRun=All",
			body: `{"metadata":{"name":"NAME-abcde","generateName":"NAME-"}}`,
		},
	}
}

// writes are a few writes of a config map.
func writes() []step {
	return []step{
		create("configmaps", "a", ""), patch("configmaps", "a", `{"data":{"a":"c"}}`), get("configmaps", "a"),
		apply("configmaps", "b", "m", `"data":{"a":"c"}`), remove("configmaps", "a", ""),
	}
}

// registration returns a step that creates an object that configures admission.
func registration(plural, body string) step {
	return step{
		verb: "configure", method: http.MethodPost,
		path: "/apis/admissionregistration.k8s.io/v1/" + plural, body: body,
	}
}

// withData returns a step that creates a config map.
func withData(name, data string) step {
	return step{
		verb: "create", method: http.MethodPost, path: "/api/v1/namespaces/NAME/configmaps",
		body: `{"metadata":{"name":"` + name + `"},"data":` + data + `}`,
	}
}

// inNamespace restricts a binding.
const inNamespace = `"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"NAME"}}}`

var policies = []step{
	create("configmaps", "param", ""),
	registration("validatingadmissionpolicies", `{"metadata":{"name":"NAME"},"spec":{`+
		`"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},`+
		`"matchConstraints":{"resourceRules":[{"apiGroups":["","apps"],"apiVersions":["v1"],`+
		`"operations":["CREATE","UPDATE"],"resources":["configmaps","deployments","deployments/scale","secrets"]}]},`+
		`"variables":[{"name":"b","expression":"params.data.a"}],`+
		`"matchConditions":[{"name":"c","expression":"object.metadata.name != 'free'"}],`+
		`"auditAnnotations":[{"key":"k","valueExpression":"'v'"}],`+
		`"validations":[`+
		`{"expression":"request.resource.resource != 'secrets'","message":"probe"},`+
		`{"expression":"!has(object.data) || !('bad' in object.data)","messageExpression":"'bad ' + variables.b"},`+
		`{"expression":"!has(object.data) || !('worse' in object.data)","reason":"Invalid"},`+
		`{"expression":"object.kind != 'Deployment' || !has(object.spec.template.spec.containers[0].resources.limits)"},`+
		`{"expression":"object.data.none != 'x' || true"}]}}`),
	registration("validatingadmissionpolicybindings", `{"metadata":{"name":"NAME"},"spec":{"policyName":"NAME",`+
		`"paramRef":{"name":"param"},"validationActions":["Deny","Audit"],`+inNamespace+`}}`),
	registration("validatingadmissionpolicybindings", `{"metadata":{"name":"NAME"},"spec":{"policyName":"NAME",`+
		`"paramRef":{"name":"param","parameterNotFoundAction":"Deny"},"validationActions":["Deny","Audit"],`+
		inNamespace+`}}`),
	configured,
	create("configmaps", "a", ""),
	withData("b", `{"bad":"","none":""}`), withData("c", `{"worse":"","none":""}`), withData("d", `{"none":""}`),
	withData("free", `{"bad":""}`),
	create("deployments", "d", ""),
	remove("configmaps", "param", ""),
	create("configmaps", "e", ""),
}

var mutations = map[string][]step{
	"apply": mutation(`"patchType":"ApplyConfiguration","applyConfiguration":{"expression":` +
		`"Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}`),
	"patch": mutation(`"patchType":"JSONPatch","jsonPatch":{"expression":` +
		`"[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]"}`),
	"fails": mutation(`"patchType":"JSONPatch","jsonPatch":{"expression":` +
		`"[JSONPatch{op: 'remove', path: '/metadata/none'}]"}`),
}

// mutation returns a life under a mutating policy with a mutation. A second policy makes the probe
// fail.
func mutation(m string) []step {
	const fails = `"patchType":"JSONPatch","jsonPatch":{"expression":` +
		`"[JSONPatch{op: 'remove', path: '/metadata/none'}]"}`
	return slices.Concat(
		mutatingPolicy("NAME", `"configmaps","widgets","pods"`, m), mutatingPolicy("NAME-probe", `"secrets"`, fails),
		[]step{
			configured, create("configmaps", "a", ""), create("widgets", "w", ""), create("pods", "p", ""),
			patch("configmaps", "a", `{"data":{"a":"c"}}`), get("widgets", "w"),
		})
}

// mutatingPolicy returns steps that create a policy and its binding.
func mutatingPolicy(name, resources, mutation string) []step {
	return []step{
		registration("mutatingadmissionpolicies", `{"metadata":{"name":"`+name+`"},"spec":{"matchConstraints":{`+
			`"resourceRules":[{"apiGroups":["*"],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":[`+
			resources+`]}]},"reinvocationPolicy":"Never","mutations":[{`+mutation+`}]}}`),
		registration("mutatingadmissionpolicybindings",
			`{"metadata":{"name":"`+name+`"},"spec":{"policyName":"`+name+`",`+inNamespace+`}}`),
	}
}
