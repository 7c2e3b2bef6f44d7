package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celerrors "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/util/webhook"
)

// This file has the checks of kube-apiserver for webhook configurations, and those that policies
// share with them. policychecks.go has those of policies and bindings. The causes and their order
// are those of kube-apiserver. Kubernetes has the checks in
// pkg/apis/admissionregistration/validation, which other modules cannot import without all of
// Kubernetes.
//
// kube-apiserver is more lenient if the old object already has a fault, because it may have been
// stored by an older release. This cannot happen here, so the old object does not matter.

const (
	maxMatchConditions = 64
	staticSuffix       = ".static.k8s.io"
)

// checkWebhooks checks a webhook configuration. A ValidatingWebhookConfiguration has no
// reinvocation policy, and is otherwise the same.
func checkWebhooks(c *v1.MutatingWebhookConfiguration) (errs field.ErrorList) {
	names := map[string]bool{}
	for i := range c.Webhooks {
		w, path := &c.Webhooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, checkWebhook(w, path)...)
		errs = append(errs, checkReviewVersions(w.AdmissionReviewVersions, path.Child("admissionReviewVersions"))...)
		if names[w.Name] && w.Name != "" {
			errs = append(errs, field.Duplicate(path.Child("name"), w.Name))
		}
		names[w.Name] = true
	}
	return append(errs, checkNameSuffix(c.Name)...)
}

func checkWebhook(w *v1.MutatingWebhook, path *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(path.Child("name"), w.Name)
	for i := range w.Rules {
		errs = append(errs, checkRule(&w.Rules[i], path.Child("rules").Index(i))...)
	}
	errs = slices.Concat(errs,
		checkSupported(path.Child("failurePolicy"), *w.FailurePolicy, v1.Fail, v1.Ignore),
		checkSupported(path.Child("matchPolicy"), *w.MatchPolicy, v1.Equivalent, v1.Exact),
		checkSideEffects(w.SideEffects, path.Child("sideEffects")),
	)
	if *w.TimeoutSeconds < 1 || *w.TimeoutSeconds > 30 {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *w.TimeoutSeconds,
			"the timeout value must be between 1 and 30 seconds"))
	}
	errs = slices.Concat(errs,
		checkSelector(w.NamespaceSelector, path.Child("namespaceSelector")),
		checkSelector(w.ObjectSelector, path.Child("objectSelector")))
	if w.ReinvocationPolicy != nil {
		errs = append(errs, checkSupported(path.Child("reinvocationPolicy"), *w.ReinvocationPolicy,
			v1.IfNeededReinvocationPolicy, v1.NeverReinvocationPolicy)...)
	}
	return slices.Concat(errs,
		checkClientConfig(&w.ClientConfig, path.Child("clientConfig")),
		expressions{}.checkConditions(w.MatchConditions, path.Child("matchConditions")))
}

// reviews are the groups and resources that no webhook receives.
var reviews = map[string][]string{
	"authentication.k8s.io": {"selfsubjectreviews", "tokenreviews"},
	"authorization.k8s.io": {
		"localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews",
	},
}

// warnOfReviews returns a warning for each rule of a webhook configuration that names reviews.
func warnOfReviews(data []byte) (all []string) {
	var c v1.MutatingWebhookConfiguration
	if json.Unmarshal(data, &c) != nil {
		return nil // it has been checked
	}
	for i, w := range c.Webhooks {
		for j, r := range w.Rules {
			path := field.NewPath("webhooks").Index(i).Child("rules").Index(j)
			for _, name := range namedReviews(r.APIGroups, r.Resources) {
				all = append(all, fmt.Sprintf("%s: %s is excluded from admission webhooks; this rule will have no effect",
					path, name))
			}
		}
	}
	return all
}

// namedReviews returns the qualified names of the reviews that a rule names.
func namedReviews(groups, resources []string) (names []string) {
	if slices.Contains(groups, "*") || slices.Contains(resources, "*") {
		return nil
	}
	for _, group := range groups {
		for _, resource := range resources {
			name := resource + "." + group
			if slices.Contains(reviews[group], resource) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func checkSideEffects(effects *v1.SideEffectClass, path *field.Path) field.ErrorList {
	if effects == nil {
		return field.ErrorList{field.Required(path, "must specify one of None, NoneOnDryRun")}
	}
	return checkSupported(path, *effects, v1.SideEffectClassNone, v1.SideEffectClassNoneOnDryRun)
}

func checkClientConfig(c *v1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch s := c.Service; {
	case (c.URL == nil) == (s == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case s == nil:
		return webhook.ValidateWebhookURL(path.Child("url"), *c.URL, true)
	default:
		// As in Kubernetes, the name and the namespace are exchanged.
		return webhook.ValidateWebhookService(path.Child("service"), s.Name, s.Namespace, s.Path, *s.Port)
	}
}

func checkReviewVersions(versions []string, path *field.Path) (errs field.ErrorList) {
	accepted := []string{"v1", "v1beta1"}
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must specify one of "+strings.Join(accepted, ", "))}
	}
	for i, version := range versions {
		if slices.Contains(versions[:i], version) {
			errs = append(errs, field.Invalid(path.Index(i), version, "duplicate version"))
			continue
		}
		errs = append(errs, invalid(path.Index(i), version, validation.IsDNS1035Label(version)...)...)
	}
	if !slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(accepted, v) }) {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+strings.Join(accepted, ", ")))
	}
	return errs
}

// checkNameSuffix refuses the names of configurations that kube-apiserver reads from files.
func checkNameSuffix(name string) field.ErrorList {
	if !strings.HasSuffix(name, staticSuffix) {
		return nil
	}
	return invalid(field.NewPath("metadata", "name"), name, fmt.Sprintf(
		"names ending with %q are reserved for static manifest-based configurations and cannot be managed via the API",
		staticSuffix))
}

// invalid returns an error for each of the messages.
func invalid(path *field.Path, value any, messages ...string) (errs field.ErrorList) {
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// checkSupported returns an error if value is none of the supported values, which are sorted.
func checkSupported[T ~string](path *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

func checkSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

// checkRule checks a rule that matches requests.
func checkRule(r *v1.RuleWithOperations, path *field.Path) field.ErrorList {
	errs := checkWildcard(r.Operations, path.Child("operations"), "operations")
	for i, operation := range r.Operations {
		errs = append(errs, checkSupported(path.Child("operations").Index(i), operation,
			v1.OperationAll, v1.Connect, v1.Create, v1.Delete, v1.Update)...)
	}
	errs = slices.Concat(errs,
		checkWildcard(r.APIGroups, path.Child("apiGroups"), "API groups"),
		checkWildcard(r.APIVersions, path.Child("apiVersions"), "API versions"))
	for i, version := range r.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	return slices.Concat(errs, checkResources(r.Resources, path.Child("resources")),
		checkSupported(path.Child("scope"), *r.Scope, v1.AllScopes, v1.ClusterScope, v1.NamespacedScope))
}

// checkWildcard returns an error if there are no values, or others beside an asterisk.
func checkWildcard[T ~string](values []T, path *field.Path, what string) field.ErrorList {
	switch {
	case len(values) == 0:
		return field.ErrorList{field.Required(path, "")}
	case len(values) > 1 && slices.Contains(values, "*"):
		return invalid(path, values, "if '*' is present, must not specify other "+what)
	}
	return nil
}

// checkResources checks the resources of a rule, such as pods, pods/*, */scale and */*.
func checkResources(resources []string, path *field.Path) (errs field.ErrorList) {
	if len(resources) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	hasWhole := false // depends on the last resource without a subresource, as in Kubernetes
	for i, name := range resources {
		resource, sub, isSub := strings.Cut(name, "/")
		switch {
		case name == "":
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		case !isSub:
			hasWhole = name != "*"
			continue
		}
		if all := resource + "/*"; slices.Contains(resources[:i], all) {
			errs = append(errs, field.Invalid(path.Index(i), name,
				fmt.Sprintf("if '%s' is present, must not specify %s", all, name)))
		}
		if all := "*/" + sub; slices.Contains(resources[:i], all) {
			errs = append(errs, field.Invalid(path.Index(i), name,
				fmt.Sprintf("if '%s' is present, must not specify %s", all, name)))
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
	}
	if hasWhole && slices.Contains(resources, "*") {
		errs = append(errs, field.Invalid(path, resources,
			"if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

// expressions checks the expressions of a policy or of a webhook.
type expressions struct {
	// compiler knows the variables of a policy. It is nil if there are none.
	compiler *cel.CompositedCompiler
	params   bool // the policy has parameters
}

// stateless returns the compiler of expressions without variables. It takes long to build.
var stateless = sync.OnceValue(func() cel.Compiler { return cel.NewCompiler(celEnvironment()) })

func celEnvironment() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// withVariables returns an expressions for a policy.
func withVariables(params *v1.ParamKind) expressions {
	c, err := cel.NewCompositedCompiler(celEnvironment())
	if err != nil {
		panic(err) // the environment is always the same
	}
	return expressions{c, params != nil}
}

// check compiles an expression, which stands as value in the object.
func (e expressions) check(
	path *field.Path, accessor cel.ExpressionAccessor, value string, o cel.OptionalVariableDeclarations,
) field.ErrorList {
	o.HasParams = e.params
	var c cel.Compiler = e.compiler
	if e.compiler == nil {
		c = stateless()
	}
	return compilationErrors(path, value, c.CompileCELExpression(accessor, o, environment.NewExpressions).Error)
}

func compilationErrors(path *field.Path, value string, err *celerrors.Error) field.ErrorList {
	switch {
	case err == nil:
		return nil
	case err.Type == celerrors.ErrorTypeRequired:
		return field.ErrorList{field.Required(path, err.Detail)}
	case err.Type == celerrors.ErrorTypeInvalid:
		return invalid(path, value, err.Detail)
	}
	return field.ErrorList{field.InternalError(path, err)}
}

var withAuthorizer = cel.OptionalVariableDeclarations{HasAuthorizer: true}

// checkConditions checks match conditions, which cannot use variables.
func (e expressions) checkConditions(all []v1.MatchCondition, path *field.Path) (errs field.ErrorList) {
	e.compiler = nil
	if len(all) > maxMatchConditions {
		errs = append(errs, field.TooMany(path, len(all), maxMatchConditions))
	}
	names := map[string]bool{}
	for i, c := range all {
		path := path.Index(i)
		if text := strings.TrimSpace(c.Expression); text == "" {
			errs = append(errs, field.Required(path.Child("expression"), ""))
		} else {
			errs = append(errs, e.check(path.Child("expression"),
				&matchconditions.MatchCondition{Expression: text}, text, withAuthorizer)...)
		}
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(path.Child("name"), ""))
			continue
		default:
			errs = append(errs, invalid(path.Child("name"), c.Name, validation.IsQualifiedName(c.Name)...)...)
		}
		if names[c.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
		}
		names[c.Name] = true
	}
	return errs
}
