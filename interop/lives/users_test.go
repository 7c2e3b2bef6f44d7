//go:build !race

package lives

import (
	"fmt"
	"net/http"
	"strings"
)

const (
	rbacGroup = "rbac.authorization.k8s.io"
	ada       = "ada-NAME"
)

// as returns a step in which the user with the given name sends the request. Kubernetes reads roles
// and bindings some time after they were written.
func as(user string, s step) step {
	s.user, s.await = user, true
	return s
}

// write returns a step that creates an object of the group rbac.authorization.k8s.io.
func write(plural, name, content string) step {
	k := kindOf(plural)
	return step{
		verb: "create", method: http.MethodPost, path: k.path("NAME", ""),
		body: fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"%s","metadata":{"name":"%s"},%s}`, rbacGroup, k.kind,
			k.nameIn(name), content),
	}
}

// rule returns a rule for resources of the core group. Its arguments are elements of JSON arrays.
func rule(verbs, resources string) string {
	return fmt.Sprintf(`{"apiGroups":[""],"verbs":[%s],"resources":[%s]}`, verbs, resources)
}

// bound returns the members of a binding of a role to ada.
func bound(kind, role string) string {
	return fmt.Sprintf(`"roleRef":{"apiGroup":"%[1]s","kind":"%s","name":"%s"},`+
		`"subjects":[{"apiGroup":"%[1]s","kind":"User","name":"%[4]s"}]`, rbacGroup, kind, role, ada)
}

// review returns a step that creates a review. spec may be empty.
func review(group, plural, kind, spec string) step {
	if spec != "" {
		spec = `,"spec":` + spec
	}
	return step{
		verb: "review", method: http.MethodPost, path: "/apis/" + group + "/v1/" + plural,
		body: fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"%s"%s}`, group, kind, spec),
	}
}

// list returns a step that lists the objects of a kind in the namespace.
func list(plural string) step {
	return step{verb: "list", method: http.MethodGet, path: kindOf(plural).path("NAME", "")}
}

// livesOfUsers are written lives in which users other than the administrator send requests.
var livesOfUsers = map[string][]step{
	"user-without-roles": {
		create("configmaps", "a", ""),
		as(ada, get("configmaps", "a")),
		as(ada, list("configmaps")),
		as(ada, step{verb: "list", method: http.MethodGet, path: "/api/v1/configmaps"}),
		as(ada, create("configmaps", "b", "")),
		as(ada, patch("configmaps", "a", `{"data":{"a":"c"}}`)),
		as(ada, apply("configmaps", "a", "m", `"data":{"a":"c"}`)),
		as(ada, remove("configmaps", "a", "")),
		as(ada, removeAll("configmaps", "")),
		as(ada, get("namespaces", "")),
		as(ada, patch("deployments", "d/scale", `{"spec":{"replicas":1}}`)),
		as(ada, list("widgets")),
		as(ada, write("roles", "r", `"rules":[]`)),
	},
	"role-and-binding": {
		create("configmaps", "a", ""),
		write("rolebindings", "reader", bound("Role", "reader")),
		as(ada, get("configmaps", "a")), // names the missing role
		write("roles", "reader", `"rules":[`+rule(`"get","patch"`, `"configmaps"`)+`,`+
			rule(`"update"`, `"replicationcontrollers/scale","pods/status"`)+
			`,{"apiGroups":[""],"verbs":["delete"],"resources":["configmaps"],"resourceNames":["b"]}]`),
		as(ada, get("configmaps", "a")),
		as(ada, get("configmaps", "none")),
		as(ada, list("configmaps")),
		as(ada, patch("configmaps", "a", `{"data":{"a":"c"}}`)),
		as(ada, patch("pods", "p/status", `{}`)),
		as(ada, apply("configmaps", "a", "m", `"data":{"a":"c"}`)),
		as(ada, apply("configmaps", "new", "m", `"data":{"a":"c"}`)), // needs create
		as(ada, remove("configmaps", "a", "")),
		as(ada, remove("configmaps", "b", "")),
		remove("roles", "reader", ""),
		as(ada, get("configmaps", "a")),
	},
	"escalation": {
		write("roles", "author", `"rules":[{"apiGroups":["`+rbacGroup+`"],"verbs":["create","patch"],`+
			`"resources":["roles","rolebindings"]},`+rule(`"list","get"`, `"pods","configmaps/*","*/scale"`)+`]`),
		write("rolebindings", "author", bound("Role", "author")),
		as(ada, write("roles", "own", `"rules":[`+rule(`"list"`, `"pods","replicasets/scale"`)+`]`)),
		as(ada, write("roles", "more", `"rules":[`+rule(`"list","delete","watch"`, `"pods","secrets"`)+`]`)),
		as(ada, write("roles", "all", `"rules":[`+rule(`"*"`, `"pods"`)+`]`)),
		as(ada, write("roles", "named", `"rules":[{"apiGroups":[""],"verbs":["delete"],"resources":["pods"],`+
			`"resourceNames":["a","b"]}]`)),
		as(ada, patch("roles", "own", `{"metadata":{"annotations":{"a":"b"}}}`)),
		as(ada, patch("roles", "author", `{"metadata":{"finalizers":["example.com/held"]}}`)),
		as(ada, write("rolebindings", "admin", bound("ClusterRole", "cluster-admin"))),
		as(ada, write("rolebindings", "none", bound("Role", "none"))),
		as(ada, write("rolebindings", "author-too", bound("Role", "author"))),
		write("roles", "binder", `"rules":[{"apiGroups":["`+rbacGroup+`"],"verbs":["bind","escalate"],`+
			`"resources":["roles"]}]`),
		write("rolebindings", "binder", bound("Role", "binder")),
		as(ada, write("roles", "more-again", `"rules":[`+rule(`"list","delete"`, `"secrets"`)+`]`)),
		as(ada, write("rolebindings", "more-again", bound("Role", "more-again"))),
		as(ada, list("secrets")),
		patch("roles", "author", release),
	},
	"aggregated-roles": {
		write("clusterroles", "all", `"rules":null,"aggregationRule":{"clusterRoleSelectors":`+
			`[{"matchLabels":{"to":"NAME"}}]}`),
		write("clusterroles", "b", `"rules":[`+rule(`"list"`, `"pods"`)+`]`),
		write("clusterroles", "a", `"rules":[`+rule(`"list"`, `"configmaps"`)+`,`+rule(`"list"`, `"pods"`)+`]`),
		write("rolebindings", "all", bound("ClusterRole", "NAME-all")),
		patch("clusterroles", "b", `{"metadata":{"labels":{"to":"NAME"}}}`),
		as(ada, list("pods")),
		patch("clusterroles", "a", `{"metadata":{"labels":{"to":"NAME"}}}`),
		as(ada, list("configmaps")),
		remove("clusterroles", "b", ""),
		as(ada, list("pods")),
		patch("clusterroles", "a", `{"metadata":{"labels":null}}`),
		as(ada, list("pods")),
		remove("clusterroles", "a", ""),
		remove("clusterroles", "all", ""),
	},
	"reviews": {
		write("roles", "reader", `"rules":[`+rule(`"get","list"`, `"pods"`)+`]`),
		write("rolebindings", "reader", bound("Role", "reader")),
		as(ada, list("pods")),
		review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", ""),
		as(ada, review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", "")),
		as("system:serviceaccount:NAME:robot",
			review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", "")),
		as(ada, review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
			`{"resourceAttributes":{"namespace":"NAME","verb":"list","resource":"secrets"}}`)),
		as(ada, review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview",
			`{"user":"x","resourceAttributes":{"namespace":"NAME","verb":"list","resource":"secrets"}}`)),
		review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview",
			`{"user":"`+ada+`","resourceAttributes":{"namespace":"NAME","verb":"list","resource":"secrets"}}`),
		review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview",
			`{"user":"`+ada+`","nonResourceAttributes":{"verb":"get","path":"/metrics"}}`),
		review("authentication.k8s.io", "tokenreviews", "TokenReview", `{"token":"none"}`),
	},
	"roles-from-the-start": rolesFromTheStart(),
	"reviews-are-checked":  checkedReviews(),
	"parameters-of-policies": {
		write("clusterroles", "author", `"rules":[{"apiGroups":["admissionregistration.k8s.io"],"verbs":["*"],`+
			`"resources":["*"]},`+rule(`"get"`, `"configmaps"`)+`]`),
		write("clusterrolebindings", "author", bound("ClusterRole", "NAME-author")),
		as(ada, policyWith("own", "v1", "ConfigMap")),
		as(ada, policyWith("secrets", "v1", "Secret")),
		as(ada, policyWith("unknown", "example.com/v1", "Unknown")),
		policyWith("secrets", "v1", "Secret"),
		policyWith("unknown", "example.com/v1", "Unknown"),
		as(ada, changePolicy("own", `{"metadata":{"labels":{"a":"b"}}}`)),
		as(ada, changePolicy("own", `{"spec":{"paramKind":{"kind":"Pod"}}}`)),
		as(ada, changePolicy("secrets", `{"spec":{"failurePolicy":"Ignore"}}`)),
		as(ada, changePolicy("secrets", `{"spec":{"paramKind":null}}`)),
		as(ada, bindingWith("a", "own", `"name":"p"`)),
		as(ada, bindingWith("b", "own", `"selector":{}`)),
		as(ada, bindingWith("c", "own", `"name":"p","namespace":"NAME"`)),
		as(ada, bindingWith("d", "none", `"name":"p"`)),
		policyWith("again", "v1", "Secret"),
		as(ada, bindingWith("e", "again", `"name":"p"`)),
		as(ada, bindingWith("f", "unknown", `"selector":{"matchLabels":{"a":"b"}}`)),
		bindingWith("g", "again", `"name":"p"`),
		as(ada, step{
			verb: "configure", method: http.MethodPatch, contentType: mergePatch,
			path: policiesPath + "validatingadmissionpolicybindings/NAME-g", body: `{"metadata":{"labels":{"a":"b"}}}`,
		}),
		mutatingPolicyWith("m"),
		as(ada, mutatingPolicyWith("n")),
		as(ada, mutatingBindingWith("m", "m", `"name":"p"`)),
		as(ada, mutatingBindingWith("n", "none", `"selector":{}`)),
	},
}

const policiesPath = "/apis/admissionregistration.k8s.io/v1/"

// policyWith returns a step that creates a validating policy with parameters of a kind.
func policyWith(name, apiVersion, kind string) step {
	return registration("validatingadmissionpolicies", `{"metadata":{"name":"NAME-`+name+`"},"spec":{`+
		`"paramKind":{"apiVersion":"`+apiVersion+`","kind":"`+kind+`"},`+matchNothing+
		`,"validations":[{"expression":"true"}]}}`)
}

func changePolicy(name, change string) step {
	return step{
		verb: "configure", method: http.MethodPatch, contentType: mergePatch,
		path: policiesPath + "validatingadmissionpolicies/NAME-" + name, body: change,
	}
}

// bindingWith returns a step that binds a validating policy to parameters.
func bindingWith(name, policy, parameters string) step {
	return registration("validatingadmissionpolicybindings", `{"metadata":{"name":"NAME-`+name+`"},"spec":{`+
		`"policyName":"NAME-`+policy+`","paramRef":{"parameterNotFoundAction":"Deny",`+parameters+`},`+
		`"validationActions":["Deny"]}}`)
}

// mutatingPolicyWith returns a step that creates a mutating policy whose parameters are secrets.
func mutatingPolicyWith(name string) step {
	return registration("mutatingadmissionpolicies", `{"metadata":{"name":"NAME-`+name+`"},"spec":{`+
		`"paramKind":{"apiVersion":"v1","kind":"Secret"},`+matchNothing+`,"reinvocationPolicy":"Never","mutations":[{`+
		`"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'remove', path: '/none'}]"}}]}}`)
}

// mutatingBindingWith is like bindingWith for a mutating policy.
func mutatingBindingWith(name, policy, parameters string) step {
	return registration("mutatingadmissionpolicybindings", `{"metadata":{"name":"NAME-`+name+`"},"spec":{`+
		`"policyName":"NAME-`+policy+`","paramRef":{"parameterNotFoundAction":"Deny",`+parameters+`}}}`)
}

// rolesFromTheStart returns a life that reads the cluster roles for users.
func rolesFromTheStart() (steps []step) {
	for _, name := range []string{
		"cluster-admin", "admin", "edit", "view", "system:aggregate-to-admin", "system:aggregate-to-edit",
		"system:aggregate-to-view",
	} {
		steps = append(steps, step{
			verb: "get", method: http.MethodGet, path: "/apis/" + rbacGroup + "/v1/clusterroles/" + name,
		})
	}
	return append(steps,
		write("rolebindings", "editor", bound("ClusterRole", "edit")),
		as(ada, create("configmaps", "a", "")),
		as(ada, list("secrets")),
		as(ada, list("roles")),
		as(ada, write("roles", "r", `"rules":[]`)))
}

// checkedReviews returns a life of reviews, most of which are invalid.
func checkedReviews() (steps []step) {
	const (
		resource = `"resourceAttributes":{"namespace":"NAME","verb":"list","resource":"pods"}`
		path     = `"nonResourceAttributes":{"verb":"get","path":"/metrics"}`
		selected = `"resourceAttributes":{"namespace":"NAME","verb":"list","resource":"pods",`
	)
	for _, spec := range []string{
		"", `{}`, `{"user":"a",` + resource + `}`, `{` + resource + `}`, `{` + path + `}`,
		`{` + resource + `,` + path + `}`, `{"user":"a",` + path + `}`,
		`{"user":"a",` + resource + `,` + path + `}`, `{"user":"a","resourceAttributes":{}}`,
		`{"user":"a","nonResourceAttributes":{}}`, `{"user":"a","resourceAttributes":{"namespace":"other"}}`,
		`{"user":"a",` + selected + `"fieldSelector":{}}}`, `{"user":"a",` + selected + `"labelSelector":{}}}`,
		`{"user":"a",` + selected + `"fieldSelector":{"rawSelector":"a=b","requirements":[{"key":"a"}]}}}`,
		`{"user":"a",` + selected + `"labelSelector":{"requirements":[{"key":"","operator":"In"},` +
			`{"key":"a","operator":"Exists","values":["b"]},{"key":"a","operator":"Has"}]}}}`,
		`{"user":"a",` + selected + `"fieldSelector":{"requirements":[{"key":"","operator":"In"},` +
			`{"key":"a","operator":"Exists","values":["b"]},{"key":"a","operator":"Has"}]}}}`,
		`{"user":"a",` + selected + `"labelSelector":{"rawSelector":"a=b"}}}`,
		`{"user":"a",` + selected + `"labelSelector":{"requirements":[{"key":"a","operator":"In","values":["b"]}]}}}`,
	} {
		steps = append(steps,
			review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", spec),
			review("authorization.k8s.io", "namespaces/NAME/localsubjectaccessreviews", "LocalSubjectAccessReview",
				spec),
			review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
				strings.Replace(spec, `"user":"a",`, "", 1)))
	}
	valid := steps[len(steps)-3:]
	for _, metadata := range []string{`{"name":"a"}`, `{"namespace":"NAME"}`, `{"namespace":"other"}`, `{}`} {
		for _, s := range valid {
			s.body = strings.Replace(s.body, `{`, `{"metadata":`+metadata+`,`, 1)
			steps = append(steps, s)
		}
	}
	return append(steps,
		review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview",
			`{"groups":["a"],"uid":"b","extra":{"c":["d"]},`+resource+`}`),
		review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", `{"user":1}`),
		review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", ""),
		review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", `{"namespace":1}`),
		review("authentication.k8s.io", "tokenreviews", "TokenReview", ""),
		review("authentication.k8s.io", "tokenreviews", "TokenReview", `{"token":"","audiences":["a"]}`),
		review("authentication.k8s.io", "tokenreviews", "TokenReview", `{"token":1}`),
	)
}
