package rules

import (
	"encoding/json"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completed returns a function that sets the defaults of an object, whose Go type is T.
func completed[T any](setDefaults func(*T)) func(*listwatch.Object, []byte) ([]byte, error) {
	return func(_ *listwatch.Object, data []byte) ([]byte, error) {
		o := new(T)
		if err := json.Unmarshal(data, o); err != nil {
			return nil, err
		}
		before, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		setDefaults(o)
		after, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		return rawjson.Rebase(data, before, after)
	}
}

// orDefault sets *p to value if it is nil.
func orDefault[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func completeValidatingWebhooks(c *v1.ValidatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		completeWebhook(&w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.TimeoutSeconds)
		orDefault(&w.NamespaceSelector, metav1.LabelSelector{})
		orDefault(&w.ObjectSelector, metav1.LabelSelector{})
	}
}

func completeMutatingWebhooks(c *v1.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		completeWebhook(&w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.TimeoutSeconds)
		orDefault(&w.NamespaceSelector, metav1.LabelSelector{})
		orDefault(&w.ObjectSelector, metav1.LabelSelector{})
		orDefault(&w.ReinvocationPolicy, v1.NeverReinvocationPolicy)
	}
}

// completeWebhook sets the defaults that webhooks of both kinds have.
func completeWebhook(
	client *v1.WebhookClientConfig, rules []v1.RuleWithOperations, failure **v1.FailurePolicyType,
	match **v1.MatchPolicyType, timeout **int32,
) {
	orDefault(failure, v1.Fail)
	orDefault(match, v1.Equivalent)
	orDefault(timeout, 10)
	for i := range rules {
		orDefault(&rules[i].Scope, v1.AllScopes)
	}
	if client.Service != nil {
		orDefault(&client.Service.Port, 443)
	}
}

func completeValidatingPolicy(p *v1.ValidatingAdmissionPolicy) {
	orDefault(&p.Spec.FailurePolicy, v1.Fail)
	completeMatch(p.Spec.MatchConstraints)
}

func completeMutatingPolicy(p *v1.MutatingAdmissionPolicy) {
	orDefault(&p.Spec.FailurePolicy, v1.Fail)
	completeMatch(p.Spec.MatchConstraints)
}

func completeValidatingBinding(b *v1.ValidatingAdmissionPolicyBinding) {
	completeMatch(b.Spec.MatchResources)
}

func completeMutatingBinding(b *v1.MutatingAdmissionPolicyBinding) {
	completeMatch(b.Spec.MatchResources)
}

// requireAction returns a function like change, for bindings of the given kind. It also requires
// that a binding with a parameter says what happens if there is none.
func requireAction(
	kind string, change func(*listwatch.Object, []byte) ([]byte, error),
) func(*listwatch.Object, []byte) ([]byte, error) {
	return func(old *listwatch.Object, data []byte) ([]byte, error) {
		if rawjson.Lookup(data, "spec", "paramRef") != nil &&
			rawjson.Lookup(data, "spec", "paramRef", "parameterNotFoundAction") == nil {
			name, _ := rawjson.String(rawjson.Lookup(data, "metadata", "name"))
			return nil, apistatus.Invalid(v1.GroupName, kind, name, field.ErrorList{
				field.Required(field.NewPath("spec", "paramRef", "parameterNotFoundAction"), ""),
			})
		}
		return change(old, data)
	}
}

func completeMatch(m *v1.MatchResources) {
	if m == nil {
		return
	}
	orDefault(&m.MatchPolicy, v1.Equivalent)
	orDefault(&m.NamespaceSelector, metav1.LabelSelector{})
	orDefault(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]v1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			orDefault(&rules[i].Scope, v1.AllScopes)
		}
	}
}
