package rules

import (
	"bytes"
	"encoding/json"

	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/memo"
	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completed returns a function that sets the defaults of an object, whose Go type is T. As in
// Kubernetes, the object loses empty members that are optional.
func completed[T any](setDefaults func(*T)) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		o := new(T)
		if err := json.Unmarshal(data, o); err != nil {
			return nil, err
		}
		setDefaults(o)
		return json.Marshal(o)
	}
}

// checked returns a function that checks an object, whose Go type is T. All Envs share the results,
// because it takes long to compile expressions.
func checked[T any](check func(*T) field.ErrorList) func([]byte) (field.ErrorList, error) {
	var results memo.Memo[field.ErrorList]
	return func(data []byte) (field.ErrorList, error) {
		// The checks depend on no other member.
		key := bytes.Join([][]byte{
			rawjson.Lookup(data, "metadata", "name"), rawjson.Lookup(data, "spec"), rawjson.Lookup(data, "status"),
			rawjson.Lookup(data, "webhooks"),
		}, []byte("\n"))
		return results.Get(string(key), func() (field.ErrorList, error) {
			o := new(T)
			if err := json.Unmarshal(data, o); err != nil {
				return nil, err
			}
			return check(o), nil
		})
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
