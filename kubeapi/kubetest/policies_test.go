package kubetest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// apply creates the objects in a text, whose documents are in YAML.
func (c *cluster) apply(t *testing.T, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		r, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		api := c.dynamic.Resource(r)
		if u.GetNamespace() != "" {
			testkit.Must(api.Namespace(u.GetNamespace()).Create(t.Context(), &u, metav1.CreateOptions{}))(t)
		} else {
			testkit.Must(api.Create(t.Context(), &u, metav1.CreateOptions{}))(t)
		}
	}
}

// limit allows deployments with as many replicas as a config map says, and warns of others in
// kube-system.
const limit = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  variables: [{name: replicas, expression: object.spec.replicas}]
  matchConditions: [{name: named, expression: object.metadata.name != 'free'}]
  validations:
  - expression: variables.replicas <= int(params.data.most)
    messageExpression: "'at most ' + params.data.most"
  - {expression: '!has(object.spec.template.spec.containers[0].resources.limits)', message: no limits}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: limit}
spec:
  policyName: limit
  paramRef: {name: limit, namespace: default, parameterNotFoundAction: Deny}
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}`

func TestValidatingPoliciesDecide(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.apply(t, limit)
		api := c.AppsV1().Deployments("default")
		three, four := int32(3), int32(4)
		const want = "ValidatingAdmissionPolicy 'limit' with binding 'limit' denied request: at most 3"
		_, err := api.Create(t.Context(), deployment(&three), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "no params found for policy binding with `Deny`") {
			t.Errorf("got %v without a parameter", err)
		}
		c.apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limit, namespace: default}\ndata: {most: '3'}")
		if _, err = api.Create(t.Context(), deployment(&four), metav1.CreateOptions{}); err == nil ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		testkit.Must(api.Create(t.Context(), deployment(&three), metav1.CreateOptions{}))(t)
		free := deployment(&four)
		free.Name = "free"
		testkit.Must(api.Create(t.Context(), free, metav1.CreateOptions{}))(t)
	})
}

// TestParametersMustBeReadable checks that a user can name only parameters that the user may read.
// Tests in interop compare the texts with those of a cluster.
func TestParametersMustBeReadable(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.apply(t, limit)
		grant := func(name string, rules ...rbacv1.PolicyRule) {
			testkit.Must(c.RbacV1().ClusterRoles().Create(t.Context(),
				&rbacv1.ClusterRole{ObjectMeta: named(name), Rules: rules}, metav1.CreateOptions{}))(t)
			testkit.Must(c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: named(name), Subjects: []rbacv1.Subject{user("ada")},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			}, metav1.CreateOptions{}))(t)
		}
		grant("author", rbacv1.PolicyRule{
			Verbs: []string{"*"}, APIGroups: []string{registrationv1.GroupName}, Resources: []string{"*"},
		})
		policies := c.as(t, "ada").AdmissionregistrationV1().ValidatingAdmissionPolicies()
		bindings := c.as(t, "ada").AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		policy := testkit.Must(policies.Get(t.Context(), "limit", metav1.GetOptions{}))(t)
		binding := testkit.Must(bindings.Get(t.Context(), "limit", metav1.GetOptions{}))(t)
		// write writes the policy and the binding, and creates copies of them.
		write := func(name string) (errs [4]error) {
			policy, binding := policy.DeepCopy(), binding.DeepCopy()
			_, errs[0] = policies.Update(t.Context(), policy, metav1.UpdateOptions{})
			_, errs[1] = bindings.Update(t.Context(), binding, metav1.UpdateOptions{})
			policy.ObjectMeta, binding.ObjectMeta = named(name), named(name)
			_, errs[2] = policies.Create(t.Context(), policy, metav1.CreateOptions{})
			_, errs[3] = bindings.Create(t.Context(), binding, metav1.CreateOptions{})
			return errs
		}
		for i, err := range write("refused") {
			want := [4]string{
				"", "on the object referenced by paramRef", "on all objects of the referenced paramKind",
				"on the object referenced by paramRef",
			}[i]
			if isInvalid := apierrors.IsInvalid(err); isInvalid != (want != "") ||
				isInvalid && !strings.Contains(err.Error(), want) {
				t.Errorf("write %d: got %v, want %q", i, err, want)
			}
		}
		grant("reader", rule("get", "configmaps"))
		for i, err := range write("allowed") {
			if err != nil {
				t.Errorf("write %d: got %v", i, err)
			}
		}
	})
}

// TestConfigurationsAreChecked checks that faults are reported with the causes of Kubernetes. Tests
// in interop compare many more with a cluster.
func TestConfigurationsAreChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		effects := registrationv1.SideEffectClassSome
		_, err := c.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(),
			&registrationv1.MutatingWebhookConfiguration{
				ObjectMeta: named("a"), Webhooks: []registrationv1.MutatingWebhook{{
					Name: "a", SideEffects: &effects, AdmissionReviewVersions: []string{"v1"},
					MatchConditions: []registrationv1.MatchCondition{{Name: "a", Expression: "none"}},
				}},
			}, metav1.CreateOptions{})
		status, _ := err.(apierrors.APIStatus)
		if !apierrors.IsInvalid(err) {
			t.Fatalf("got %v, want that the object is invalid", err)
		}
		var got []string
		for _, cause := range status.Status().Details.Causes {
			got = append(got, cause.Field)
		}
		want := []string{"name", "sideEffects", "clientConfig", "matchConditions[0].expression"}
		for i := range want {
			want[i] = "webhooks[0]." + want[i]
		}
		if !slices.Equal(got, want) {
			t.Errorf("got the causes %v, want %v: %v", got, want, err)
		}
	})
}

func TestTypesInPoliciesAreChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.apply(t, strings.Replace(limit, "variables.replicas <=", "object.spec.repicas <=", 1))
		api := c.AdmissionregistrationV1().ValidatingAdmissionPolicies()
		p := testkit.Must(api.Get(t.Context(), "limit", metav1.GetOptions{}))(t)
		if p.Status.ObservedGeneration != 1 || len(p.Status.TypeChecking.ExpressionWarnings) == 0 ||
			p.Status.TypeChecking.ExpressionWarnings[0].FieldRef != "spec.validations[0].expression" ||
			!strings.Contains(p.Status.TypeChecking.ExpressionWarnings[0].Warning, "undefined field 'repicas'") {
			t.Errorf("got the status %+v, want a warning about an unknown field", p.Status)
		}
		p.Spec.Validations = []registrationv1.Validation{{Expression: "object.spec.replicas < 3"}}
		testkit.Must(api.Update(t.Context(), p, metav1.UpdateOptions{}))(t)
		p = testkit.Must(api.Get(t.Context(), "limit", metav1.GetOptions{}))(t)
		if p.Status.ObservedGeneration != 2 || len(p.Status.TypeChecking.ExpressionWarnings) != 0 {
			t.Errorf("after an update: got the status %+v, want no warning", p.Status)
		}
	})
}

// addLabel adds a label to config maps by one policy, and changes it by another one.
const addLabel = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: apply}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["", demo.example.com], apiVersions: [v1], operations: [CREATE], resources: ["*"]}]
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: apply}
spec: {policyName: apply}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: patch}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels/a", value: object.metadata.labels.a + "c"}]'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: patch}
spec: {policyName: patch}`

func TestMutatingPoliciesChangeObjects(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.apply(t, addLabel)
		if o := c.createConfigMap(t, named("a")); o.Labels["a"] != "bc" {
			t.Errorf("got the labels %v, want those of both policies", o.Labels)
		}
	})
}
