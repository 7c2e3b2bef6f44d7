//go:build !race

package lives

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// testConfigurations compares the checks and the defaults of objects that configure admission. Each
// object differs from a valid one in a few members. Nothing is stored.
func (c *comparison) testConfigurations(t *testing.T) {
	l := &life{comparison: c, name: "configurations", k: newMemory(), o: newMemory()}
	requests := 0
	for _, all := range configurations {
		for _, changes := range append([]string{""}, all.changes...) {
			s := registration(all.plural, string(mustJSON(changed(t, all.valid, changes))))
			s.query = "dryRun=All"
			k, o, err := l.send(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			requests++
			for _, d := range compareAnswers(k, o) {
				t.Errorf("%s with %s: %s", all.plural, changes, d)
			}
			if isValid := k.code == http.StatusCreated; isValid != strings.HasPrefix(changes, "+") && changes != "" {
				t.Errorf("%s with %s: Kubernetes responds with %d: %s", all.plural, changes, k.code, show(k.body))
			}
		}
	}
	t.Logf("%d requests", requests)
}

// changed returns an object after changes. These have the form PATH=JSON, separated by semicolons.
// Without a value, the member is removed. A plus sign at the beginning means that the object is
// still valid.
func changed(t *testing.T, object, changes string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(object), &v); err != nil {
		t.Fatal(err)
	}
	for change := range strings.SplitSeq(strings.TrimPrefix(changes, "+"), "; ") {
		path, text, _ := strings.Cut(change, "=")
		if path == "" {
			continue
		}
		var value any
		if text != "" {
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				t.Fatalf("%s: %v", change, err)
			}
		}
		names := strings.Split(path, ".")
		parent := v
		for _, name := range names[:len(names)-1] {
			switch p := parent.(type) {
			case map[string]any:
				parent = p[name]
			case []any:
				i, err := strconv.Atoi(name)
				if err != nil {
					t.Fatalf("%s: %v", change, err)
				}
				parent = p[i]
			}
		}
		members, ok := parent.(map[string]any)
		switch last := names[len(names)-1]; {
		case !ok:
			t.Fatalf("%s: no such object", change)
		case text == "":
			delete(members, last)
		default:
			members[last] = value
		}
	}
	return v
}

const (
	validRule = `{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}`
	validHook = `{"name":"a.example.com","clientConfig":{"url":"https://example.com/a"},"rules":[` + validRule + `],` +
		`"admissionReviewVersions":["v1"],"sideEffects":"None"}`
)

// changesOfRules are changes of a rule, which is at a path.
func changesOfRules(path string) (all []string) {
	for _, change := range []string{
		"apiGroups", "apiGroups=[]", `apiGroups=["*","a"]`, "apiVersions", `apiVersions=["*","a"]`, `apiVersions=[""]`,
		"operations", `operations=["*","CREATE"]`, `operations=["GET"]`, `operations=["create",""]`, "resources",
		`resources=[""]`, `resources=["*","pods"]`, `resources=["*/*","pods"]`,
		`resources=["pods/*","pods/status"]`, `resources=["*/scale","pods/scale"]`, `resources=["*/*","pods/*","*/a"]`,
		`scope="None"`, `scope=""`,
	} {
		all = append(all, path+"."+change)
	}
	for _, change := range []string{
		`apiGroups=["*"]`, `operations=["*"]`, `resources=["*"]`, `resources=["*/*"]`,
		`resources=["pods","*","*/scale"]`,
		// Kubernetes has no objection, although it means to have one.
		`resources=["pods","*"]`, `resources=["*","pods","*"]`,
		`scope="Namespaced"`,
	} {
		all = append(all, "+"+path+"."+change)
	}
	return all
}

// changesOfConditions are changes of the match conditions at a path.
func changesOfConditions(path string) (all []string) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name":"n%d","expression":"true"}`, i)
	}
	for _, value := range []string{
		`[{"name":"","expression":"true"}]`, `[{"name":"a b","expression":""}]`, `[{"name":"a","expression":" "}]`,
		`[{"name":"a","expression":"true"},{"name":"a","expression":"false"}]`, `[{"name":"a","expression":"1"}]`,
		`[{"name":"a","expression":" object.a ==  "}]`, `[{"name":"a","expression":"none"}]`,
		`[{"name":"a","expression":"request.none == 'a'"}]`, `[{"name":"a","expression":"variables.a"}]`,
		`[{"name":"a","expression":"params.a == 'a'"}]`, "[" + strings.Join(many, ",") + "]",
	} {
		all = append(all, path+"="+value)
	}
	return append(all, "+"+path+`=[{"name":"a/b","expression":"authorizer.group('').resource('pods').check('get').allowed()"}]`)
}

// changesOfSelectors are changes of the selectors of an object at a path.
func changesOfSelectors(path string) (all []string) {
	for _, change := range []string{
		`objectSelector={"matchLabels":{"a b":"c"}}`, `namespaceSelector={"matchLabels":{"a":"c d"}}`,
		`objectSelector={"matchExpressions":[{"key":"a","operator":"In"}]}`,
		`namespaceSelector={"matchExpressions":[{"key":"a","operator":"Has"},{"key":"","operator":"Exists","values":["a"]}]}`,
		`namespaceSelector={"matchExpressions":[{"key":"a","operator":"In","values":["b c"]}]}`,
		`matchPolicy="None"`, `matchPolicy=""`,
	} {
		all = append(all, path+"."+change)
	}
	return append(all, "+"+path+`.matchPolicy="Exact"`)
}

// changesOfWebhooks are changes of a webhook configuration.
func changesOfWebhooks() []string {
	all := []string{
		`webhooks.0.name=""`, `webhooks.0.name="a"`, `webhooks.0.name="A.b.c"`,
		"webhooks=[" + validHook + "," + validHook + "]", "webhooks.0.clientConfig={}", "webhooks.0.clientConfig",
		`webhooks.0.clientConfig={"url":"https://a/","service":{"name":"a","namespace":"b"}}`,
		`webhooks.0.clientConfig.url=""`, `webhooks.0.clientConfig.url="http://example.com/"`,
		`webhooks.0.clientConfig.url="https://u:p@example.com/?a=b#c"`, `webhooks.0.clientConfig.url="https:///a"`,
		`webhooks.0.clientConfig.url="://"`, `webhooks.0.clientConfig={"service":{}}`,
		`webhooks.0.clientConfig={"service":{"name":"a"}}`,
		`webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","port":0}}`,
		`webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","port":65536}}`,
		`webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","path":"a"}}`,
		`webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","path":"//"}}`,
		`webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","path":"/a//B_/"}}`,
		"webhooks.0.sideEffects", `webhooks.0.sideEffects="Some"`, `webhooks.0.sideEffects="Unknown"`,
		`webhooks.0.sideEffects=""`, "webhooks.0.admissionReviewVersions", `webhooks.0.admissionReviewVersions=[]`,
		`webhooks.0.admissionReviewVersions=["v2"]`, `webhooks.0.admissionReviewVersions=["v1","v1","V1"]`,
		`webhooks.0.timeoutSeconds=0`, `webhooks.0.timeoutSeconds=31`, `webhooks.0.failurePolicy="None"`,
		`webhooks.0.failurePolicy=""`, `metadata.name="a.static.k8s.io"`,
		`webhooks.0.name="a"; webhooks.0.timeoutSeconds=31; webhooks.0.rules=[{}]; webhooks.0.sideEffects`,
		"+webhooks=[]", "+webhooks", "+webhooks.0.rules", `+webhooks.0.timeoutSeconds=30`,
		`+webhooks.0.clientConfig={"service":{"name":"a","namespace":"b"}}`, `+webhooks.0.failurePolicy="Ignore"`,
		`+webhooks.0.clientConfig={"service":{"name":"a","namespace":"b","path":"/a/b/","port":8443}}`,
		`+webhooks.0.admissionReviewVersions=["v2","v1beta1"]`, `+webhooks.0.sideEffects="NoneOnDryRun"`,
		`+webhooks.0.rules.0.apiGroups=["authorization.k8s.io","a"]; webhooks.0.rules.0.resources=["tokenreviews",` +
			`"subjectaccessreviews","selfsubjectrulesreviews"]`,
	}
	all = append(all, changesOfRules("webhooks.0.rules.0")...)
	all = append(all, changesOfSelectors("webhooks.0")...)
	return append(all, changesOfConditions("webhooks.0.matchConditions")...)
}

// changesOfPolicies are changes that policies of both kinds have in common.
func changesOfPolicies() []string {
	all := []string{
		`spec.failurePolicy="None"`, "spec.matchConstraints", "spec.matchConstraints.resourceRules", "spec",
		`spec.matchConstraints.resourceRules=[]`, `spec.paramKind={}`, `spec.paramKind={"apiVersion":"v1"}`,
		`spec.paramKind={"apiVersion":"a/b/c","kind":"K"}`, `spec.paramKind={"apiVersion":"A/1","kind":"K k"}`,
		`spec.paramKind={"apiVersion":"a/","kind":"1"}`, `spec.paramKind={"apiVersion":"/","kind":"k"}`,
		`spec.matchConstraints.excludeResourceRules=[{}]`, `metadata.name="a.static.k8s.io"`,
		`spec.matchConstraints.resourceRules.0.resourceNames=["a","a","b/c",".."]`,
		`spec.variables=[{"name":"","expression":""}]`, `spec.variables=[{"name":"a-b","expression":"none"}]`,
		`spec.variables=[{"name":"for","expression":"1"},{"name":"b","expression":"variables.c"}]`,
		`spec.variables=[{"name":"a","expression":"params.a"}]`,
		`+spec.paramKind={"apiVersion":"v1","kind":"ConfigMap"}; spec.variables=[{"name":"a","expression":"params.a"},` +
			`{"name":"b","expression":"variables.a"}]; spec.matchConditions=[{"name":"a","expression":"params.a == 'b'"}]`,
		`+spec.failurePolicy="Ignore"`, `+spec.matchConstraints.excludeResourceRules=[` + validRule + `]`,
		`+spec.matchConstraints.resourceRules.0.resourceNames=["a","b:c"]`,
	}
	all = append(all, changesOfRules("spec.matchConstraints.resourceRules.0")...)
	all = append(all, changesOfSelectors("spec.matchConstraints")...)
	return append(all, changesOfConditions("spec.matchConditions")...)
}

// changesOfValidations are changes of a ValidatingAdmissionPolicy.
func changesOfValidations() []string {
	annotations := strings.Repeat(`{"key":"a","valueExpression":"'a'"},`, 20) + `{"key":"a","valueExpression":"'a'"}`
	return append(changesOfPolicies(),
		"spec.validations", `spec.validations=[]`, `spec.validations=[{"expression":""}]`,
		`spec.validations=[{"expression":"1"}]`, `spec.validations=[{"expression":"object.a == none"}]`,
		`spec.validations=[{"expression":"  object.a =\n= none"}]`,
		`spec.validations=[{"expression":"true","message":" ","messageExpression":" "}]`,
		`spec.validations=[{"expression":"true","message":"a\nb","reason":"Other"}]`,
		`spec.validations=[{"expression":"true","messageExpression":"1"}]`,
		`spec.validations=[{"expression":"true","messageExpression":"params.a"}]`,
		`spec.validations=[{"expression":"true","messageExpression":"authorizer.none"}]`,
		`spec.validations=[{"expression":"variables.a"}]`,
		`spec.variables=[{"name":"a","expression":"1"}]; spec.validations=[{"expression":"variables.b == 1"},`+
			`{"expression":"variables.a == 'b'"},{"expression":"variables.a"}]`,
		`spec.auditAnnotations=[{"key":"","valueExpression":""}]`,
		`spec.auditAnnotations=[{"key":"a","valueExpression":"1"},{"key":"a","valueExpression":" none"}]`,
		`spec.auditAnnotations=[{"key":"a b","valueExpression":"'`+strings.Repeat("a", 5200)+`'"}]`,
		`spec.auditAnnotations=[`+annotations+`]`,
		`+spec.auditAnnotations=[{"key":"a","valueExpression":"'a' + 'b'"}]; spec.validations`,
		`+spec.validations=[{"expression":"true","message":"a","messageExpression":"'a'","reason":"Invalid"}]`,
		`+status={"conditions":[{}]}`)
}

// changesOfMutations are changes of a MutatingAdmissionPolicy.
func changesOfMutations() []string {
	return append(changesOfPolicies(),
		"spec.mutations", `spec.mutations=[{}]`, `spec.mutations=[{"patchType":"None"}]`,
		`spec.mutations=[{"patchType":"JSONPatch"}]`, `spec.mutations=[{"patchType":"ApplyConfiguration"}]`,
		`spec.mutations=[{"patchType":"JSONPatch","jsonPatch":{"expression":" "},"applyConfiguration":{"expression":"a"}}]`,
		`spec.mutations=[{"patchType":"ApplyConfiguration","jsonPatch":{"expression":"a"},`+
			`"applyConfiguration":{"expression":" "}}]`,
		`spec.mutations=[{"patchType":"JSONPatch","jsonPatch":{"expression":" true "}}]`,
		`spec.mutations=[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{none: 'a'}]"}}]`,
		`spec.mutations=[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"true"}}]`,
		`spec.mutations=[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{spec: variables.a}"}}]`,
		"spec.reinvocationPolicy", `spec.reinvocationPolicy="None"`,
		`spec.matchConstraints.resourceRules.0.operations=["DELETE","UPDATE"]`,
		`+spec.reinvocationPolicy="IfNeeded"`)
}

// changesOfBindings are changes that bindings of both kinds have in common.
func changesOfBindings() []string {
	all := []string{
		"spec", "spec.policyName", `spec.policyName=""`, `spec.policyName="a b"`, `spec.paramRef={}`,
		`spec.paramRef={"name":"a"}`, `spec.paramRef={"name":"a/b","parameterNotFoundAction":"None"}`,
		`spec.paramRef={"name":"..","selector":{"matchLabels":{"a b":"c"}},"parameterNotFoundAction":""}`,
		`spec.matchResources.excludeResourceRules=[{}]`, `metadata.name="a.static.k8s.io"`,
		`+spec.paramRef={"selector":{},"parameterNotFoundAction":"Allow"}`, "+spec.matchResources",
		"+spec.matchResources={}", `+spec.paramRef={"name":"a","namespace":"b","parameterNotFoundAction":"Deny"}`,
	}
	all = append(all, changesOfRules("spec.matchResources.resourceRules.0")...)
	return append(all, changesOfSelectors("spec.matchResources")...)
}

// configurations are the kinds of objects that configure admission, each with a valid object and
// changes.
var configurations = []struct {
	plural, valid string
	changes       []string
}{
	{
		"validatingwebhookconfigurations", `{"metadata":{"name":"a"},"webhooks":[` + validHook + `]}`,
		append(changesOfWebhooks(), `+webhooks.0.reinvocationPolicy="None"`),
	},
	{
		"mutatingwebhookconfigurations", `{"metadata":{"name":"a"},"webhooks":[` + validHook + `]}`,
		append(changesOfWebhooks(), `webhooks.0.reinvocationPolicy="None"`,
			`+webhooks.0.reinvocationPolicy="IfNeeded"`),
	},
	{
		"validatingadmissionpolicies", `{"metadata":{"name":"a"},"spec":{"matchConstraints":{"resourceRules":[` +
			validRule + `]},"validations":[{"expression":"true"}]}}`,
		changesOfValidations(),
	},
	{
		"mutatingadmissionpolicies", `{"metadata":{"name":"a"},"spec":{"matchConstraints":{"resourceRules":[` + validRule +
			`]},"reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":` +
			`{"expression":"Object{}"}}]}}`,
		changesOfMutations(),
	},
	{
		"validatingadmissionpolicybindings", `{"metadata":{"name":"a"},"spec":{"policyName":"a","validationActions":["Deny"],` +
			`"matchResources":{"resourceRules":[` + validRule + `]}}}`,
		append(changesOfBindings(), "spec.validationActions", `spec.validationActions=["None","Deny","Deny","Warn"]`,
			"spec.policyName; spec.validationActions; spec.paramRef={}", `+spec.validationActions=["Audit","Warn"]`),
	},
	{
		"mutatingadmissionpolicybindings", `{"metadata":{"name":"a"},"spec":{"policyName":"a","matchResources":` +
			`{"resourceRules":[` + validRule + `]}}}`,
		append(changesOfBindings(), `spec.matchResources.resourceRules.0.operations=["DELETE","*"]`),
	},
}
