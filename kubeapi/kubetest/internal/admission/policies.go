package admission

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/memo"
	kubeschema "github.com/listwatch/listwatch/kubeapi/schema"
	v1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// validatingPolicies returns the plugin for ValidatingAdmissionPolicies.
func (c *Chain) validatingPolicies() validatingPlugin {
	return &policyPlugin[*v1.ValidatingAdmissionPolicy, *v1.ValidatingAdmissionPolicyBinding, validating.Validator]{
		c: c, policies: c.policies.all, bindings: c.bindings.all, compile: compileValidating,
		dispatcher: validating.NewDispatcher(c.Authorizer, generic.NewPolicyMatcher(c.matcher())),
		policyOf:   validating.NewValidatingAdmissionPolicyAccessor,
		bindingOf:  validating.NewValidatingAdmissionPolicyBindingAccessor,
	}
}

// mutatingPolicies returns the plugin for MutatingAdmissionPolicies.
func (c *Chain) mutatingPolicies() mutatingPlugin {
	return &policyPlugin[*v1.MutatingAdmissionPolicy, *v1.MutatingAdmissionPolicyBinding, mutating.PolicyEvaluator]{
		c: c, policies: c.mutations.all, bindings: c.mutationBindings.all, compile: compileMutating,
		dispatcher: mutating.NewDispatcher(c.Authorizer, c.matcher(), converters{c}),
		policyOf:   mutating.NewMutatingAdmissionPolicyAccessor,
		bindingOf:  mutating.NewMutatingAdmissionPolicyBindingAccessor,
	}
}

func (c *Chain) matcher() *matching.Matcher {
	return matching.NewMatcher(namespaces{c: c}, client{c: c})
}

// A policyPlugin applies the policies of a kind with a dispatcher of Kubernetes.
type policyPlugin[P, B object, E any] struct {
	c          *Chain
	policies   func() []P
	bindings   func() []B
	dispatcher generic.Dispatcher[generic.PolicyHook[P, B, E]]
	policyOf   func(P) generic.PolicyAccessor
	bindingOf  func(B) generic.BindingAccessor
	compile    func(P) E

	mu       sync.Mutex
	compiled map[P]E // guarded by mu
}

// An object is a pointer to a policy or a binding.
type object interface {
	runtime.Object
	comparable
}

// Handles implements [admission.Interface].
func (p *policyPlugin[P, B, E]) Handles(admission.Operation) bool { return true }

// mayApply implements [plugin].
func (p *policyPlugin[P, B, E]) mayApply(admission.Attributes, admission.ObjectInterfaces) bool {
	return len(p.hooks()) > 0
}

// Validate implements [admission.ValidationInterface].
func (p *policyPlugin[P, B, E]) Validate(
	ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces,
) error {
	return p.dispatcher.Dispatch(ctx, a, o, p.hooks())
}

// Admit implements [admission.MutationInterface].
func (p *policyPlugin[P, B, E]) Admit(
	ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces,
) error {
	if a.GetOperation() == admission.Delete {
		return nil // there is no object to change
	}
	return p.dispatcher.Dispatch(ctx, a, o, p.hooks())
}

// hooks returns the policies that have bindings, ordered by name. It compiles each policy once.
func (p *policyPlugin[P, B, E]) hooks() (hooks []generic.PolicyHook[P, B, E]) {
	bindings := map[string][]B{}
	for _, b := range p.bindings() {
		name := p.bindingOf(b).GetPolicyName().Name
		bindings[name] = append(bindings[name], b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := map[P]E{}
	for _, policy := range p.policies() {
		a := p.policyOf(policy)
		bound := bindings[a.GetName()]
		if bound == nil {
			continue
		}
		e, ok := p.compiled[policy]
		if !ok {
			e = p.compile(policy)
		}
		known[policy] = e
		h := generic.PolicyHook[P, B, E]{Policy: policy, Bindings: bound, Evaluator: e}
		if kind := a.GetParamKind(); kind != nil {
			h.ParamInformer, h.ParamScope, h.ConfigurationError = p.c.params(kind)
		}
		hooks = append(hooks, h)
	}
	p.compiled = known
	return hooks
}

// A compiler compiles the expressions of a policy.
type compiler struct {
	*cel.CompositedCompiler
	variables cel.OptionalVariableDeclarations
	failure   *v1.FailurePolicyType
}

// newCompiler returns a compiler for the expressions of a policy, which may use its variables.
func newCompiler(
	param *v1.ParamKind, variables []v1.Variable, failure *v1.FailurePolicyType,
) (compiler, error) {
	c, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return compiler{}, err
	}
	o := cel.OptionalVariableDeclarations{HasParams: param != nil, HasAuthorizer: true}
	named := make([]cel.NamedExpressionAccessor, len(variables))
	for i, v := range variables {
		named[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	c.CompileAndStoreVariables(named, o, environment.StoredExpressions)
	return compiler{c, o, failure}, nil
}

// conditions compiles the match conditions of a policy with the given name.
func (c compiler) conditions(policy string, all []v1.MatchCondition) matchconditions.Matcher {
	if len(all) == 0 {
		return nil
	}
	e := make([]cel.ExpressionAccessor, len(all))
	for i := range all {
		e[i] = (*matchconditions.MatchCondition)(&all[i])
	}
	return matchconditions.NewMatcher(c.expressions(e), c.failure, "policy", "validate", policy)
}

func (c compiler) expressions(all []cel.ExpressionAccessor) cel.ConditionEvaluator {
	return c.CompileCondition(all, c.variables, environment.StoredExpressions)
}

// validators and evaluators have the compiled policies of all Envs, by their names and specs.
var (
	validators memo.Memo[validating.Validator]
	evaluators memo.Memo[mutating.PolicyEvaluator]
)

// compiled returns the compiled form of a policy with the given name and spec from m.
func compiled[E any](m *memo.Memo[E], name string, spec any, compile func() E) E {
	text, _ := json.Marshal(spec) // it was decoded from JSON
	e, _ := m.Get(name+"\n"+string(text), func() (E, error) { return compile(), nil })
	return e
}

func compileValidating(p *v1.ValidatingAdmissionPolicy) validating.Validator {
	return compiled(&validators, p.Name, p.Spec, func() validating.Validator { return newValidator(p) })
}

func newValidator(p *v1.ValidatingAdmissionPolicy) validating.Validator {
	c, err := newCompiler(p.Spec.ParamKind, p.Spec.Variables, p.Spec.FailurePolicy)
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, p.Spec.FailurePolicy, err)
	}
	rules := make([]cel.ExpressionAccessor, len(p.Spec.Validations))
	messages := make([]cel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		rules[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	annotations := make([]cel.ExpressionAccessor, len(p.Spec.AuditAnnotations))
	for i, a := range p.Spec.AuditAnnotations {
		annotations[i] = &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}
	}
	text := c
	text.variables.HasAuthorizer = false
	return validating.NewValidator(c.expressions(rules), c.conditions(p.Name, p.Spec.MatchConditions),
		c.expressions(annotations), text.expressions(messages), p.Spec.FailurePolicy, nil)
}

func compileMutating(p *v1.MutatingAdmissionPolicy) mutating.PolicyEvaluator {
	return compiled(&evaluators, p.Name, p.Spec, func() mutating.PolicyEvaluator { return newEvaluator(p) })
}

func newEvaluator(p *v1.MutatingAdmissionPolicy) (e mutating.PolicyEvaluator) {
	c, err := newCompiler(p.Spec.ParamKind, p.Spec.Variables, p.Spec.FailurePolicy)
	if err != nil {
		return mutating.PolicyEvaluator{Error: err}
	}
	e.CompositedCompiler, e.Matcher = c.CompositedCompiler, c.conditions(p.Name, p.Spec.MatchConditions)
	o := c.variables
	o.HasPatchTypes = true
	for _, m := range p.Spec.Mutations {
		switch {
		case m.JSONPatch != nil:
			e.Mutators = append(e.Mutators, patch.NewJSONPatcher(c.CompileMutatingEvaluator(
				&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, o, environment.StoredExpressions)))
		case m.ApplyConfiguration != nil:
			e.Mutators = append(e.Mutators, patch.NewApplyConfigurationPatcher(c.CompileMutatingEvaluator(
				&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, o,
				environment.StoredExpressions)))
		}
	}
	return e
}

// params returns the lister of the objects that the parameters of a policy can be.
func (c *Chain) params(kind *v1.ParamKind) (informers.GenericInformer, meta.RESTScope, error) {
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, nil, err
	}
	r, found := find(c.Cluster, gv.WithKind(kind.Kind))
	if !found {
		return nil, nil, errors.New("failed to find resource referenced by paramKind: '" + kind.String() + "'")
	}
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return params{c: c, resource: r}, scope, nil
}

// params lists the objects of a resource, for policies. It is an informer and a lister.
type params struct {
	cache.SharedIndexInformer
	c         *Chain
	resource  kubeapi.Resource
	namespace string
}

func (p params) Informer() cache.SharedIndexInformer { return p }

func (p params) Lister() cache.GenericLister { return p }

func (p params) HasSynced() bool { return true }

func (p params) ByNamespace(namespace string) cache.GenericNamespaceLister {
	p.namespace = namespace
	return p
}

func (p params) Get(name string) (runtime.Object, error) {
	o, err := p.c.Cluster.Get(p.resource.QualifiedName(), listwatch.Key{Namespace: p.namespace, Name: name})
	if err != nil {
		return nil, apierrors.NewNotFound(objects{resource: &p.resource}.plural().GroupResource(), name)
	}
	return p.decode(o)
}

func (p params) List(s labels.Selector) (all []runtime.Object, err error) {
	for _, o := range p.c.Cluster.List(p.resource.QualifiedName(), p.namespace) {
		decoded, err := p.decode(o)
		if err != nil {
			return nil, err
		}
		if m, err := meta.Accessor(decoded); err == nil && s.Matches(labels.Set(m.GetLabels())) {
			all = append(all, decoded)
		}
	}
	return all, nil
}

// decode decodes an object as informers do: objects of built-in kinds have no kind.
func (p params) decode(o *listwatch.Object) (runtime.Object, error) {
	decoded, err := decode(o.Data, objects{resource: &p.resource}.kind())
	if _, ok := decoded.(runtime.Unstructured); err == nil && !ok {
		decoded.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return decoded, err
}

// converters has the types of the objects that mutating policies change.
type converters struct{ chain *Chain }

// Run implements [patch.TypeConverterManager].
func (converters) Run(context.Context) {}

// GetTypeConverter implements [patch.TypeConverterManager].
func (c converters) GetTypeConverter(kind schema.GroupVersionKind) managedfields.TypeConverter {
	r, found := find(c.chain.Cluster, kind)
	if !found {
		return nil
	}
	converter, err := apply.NewTypeConverter(map[string]*kubeschema.Type{kind.Version: r.Schema}, kind)
	if err != nil {
		return nil
	}
	return converter
}
