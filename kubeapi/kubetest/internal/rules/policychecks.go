package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/util/jsonpath"
)

const (
	maxAuditAnnotations      = 20
	maxAuditExpressionLength = 5 << 10
)

func checkValidatingPolicy(p *v1.ValidatingAdmissionPolicy) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	x := expressions{params: spec.ParamKind != nil}
	if len(spec.Variables) > 0 {
		x = withVariables(spec.ParamKind)
	}
	errs := slices.Concat(
		checkSupported(path.Child("failurePolicy"), *spec.FailurePolicy, v1.Fail, v1.Ignore),
		checkParamKind(spec.ParamKind, path.Child("paramKind")),
		checkConstraints(spec.MatchConstraints, path.Child("matchConstraints")),
		x.checkConditions(spec.MatchConditions, path.Child("matchConditions")),
		x.checkVariables(spec.Variables, path.Child("variables")),
	)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const missing = "validations or auditAnnotations must contain at least one item"
		errs = append(errs, field.Required(path.Child("validations"), missing),
			field.Required(path.Child("auditAnnotations"), missing))
	}
	for i := range spec.Validations {
		errs = append(errs, x.checkValidation(&spec.Validations[i], path.Child("validations").Index(i))...)
	}
	return slices.Concat(errs,
		x.checkAuditAnnotations(p.Name, spec.AuditAnnotations, path.Child("auditAnnotations")),
		checkPolicyStatus(&p.Status, field.NewPath("status")), checkNameSuffix(p.Name))
}

func (e expressions) checkValidation(v *v1.Validation, path *field.Path) (errs field.ErrorList) {
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(path.Child("expression"), "expression is not specified"))
	} else {
		errs = append(errs, e.check(path.Child("expression"),
			&validating.ValidationCondition{Expression: v.Expression}, v.Expression, withAuthorizer)...)
	}
	switch {
	case v.MessageExpression == "":
	case strings.TrimSpace(v.MessageExpression) == "":
		errs = append(errs,
			field.Invalid(path.Child("messageExpression"), v.MessageExpression, "must be non-empty if specified"))
	default:
		errs = append(errs, e.check(path.Child("messageExpression"),
			&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, v.MessageExpression,
			cel.OptionalVariableDeclarations{})...)
	}
	switch message := strings.TrimSpace(v.Message); {
	case v.Message != "" && message == "":
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.ContainsAny(message, "\n\r"):
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "must not contain line breaks"))
	}
	if v.Reason != nil {
		errs = append(errs, checkSupported(path.Child("reason"), *v.Reason, metav1.StatusReasonForbidden,
			metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
	}
	return errs
}

// checkAuditAnnotations checks the audit annotations of the policy with the given name.
func (e expressions) checkAuditAnnotations(
	policy string, all []v1.AuditAnnotation, path *field.Path,
) (errs field.ErrorList) {
	if len(all) > maxAuditAnnotations {
		// Kubernetes reports the values of a type whose members have no JSON names.
		values := make([]struct{ Key, ValueExpression string }, len(all))
		for i, a := range all {
			values[i] = struct{ Key, ValueExpression string }(a)
		}
		errs = append(errs, field.Invalid(path, values,
			fmt.Sprintf("must not have more than %d auditAnnotations", maxAuditAnnotations)))
	}
	keys := map[string]bool{}
	for i, a := range all {
		path := path.Index(i)
		key := policy + "/" + a.Key
		errs = append(errs, invalid(path.Child("key"), key, validation.IsQualifiedName(key)...)...)
		switch text, at := strings.TrimSpace(a.ValueExpression), path.Child("valueExpression"); {
		case text == "":
			errs = append(errs, field.Required(at, "valueExpression is not specified"))
		case len(text) > maxAuditExpressionLength:
			errs = append(errs,
				field.Required(at, fmt.Sprintf("must not exceed %d bytes in length", maxAuditExpressionLength)))
		default:
			errs = append(errs, e.check(at,
				&validating.AuditAnnotationCondition{ValueExpression: text}, a.ValueExpression, withAuthorizer)...)
		}
		if keys[a.Key] {
			errs = append(errs, field.Duplicate(path.Child("key"), a.Key))
		}
		keys[a.Key] = true
	}
	return errs
}

func checkPolicyStatus(s *v1.ValidatingAdmissionPolicyStatus, path *field.Path) (errs field.ErrorList) {
	if s.TypeChecking != nil {
		for i, w := range s.TypeChecking.ExpressionWarnings {
			at := path.Child("typeChecking", "expressionWarnings").Index(i)
			if w.Warning == "" {
				errs = append(errs, field.Required(at.Child("warning"), ""))
			}
			errs = append(errs, checkFieldReference(w.FieldRef, at.Child("fieldRef"))...)
		}
	}
	return append(errs, metav1validation.ValidateConditions(s.Conditions, path.Child("conditions"))...)
}

func checkFieldReference(reference string, path *field.Path) field.ErrorList {
	reference = strings.TrimSpace(reference)
	if reference == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if err := jsonpath.New("spec").Parse("{" + reference + "}"); err != nil {
		return invalid(path, reference, fmt.Sprintf("invalid JSONPath: %v", err))
	}
	return nil
}

func checkParamKind(k *v1.ParamKind, path *field.Path) (errs field.ErrorList) {
	if k == nil {
		return nil
	}
	switch group, version, found := strings.Cut(k.APIVersion, "/"); {
	case k.APIVersion == "":
		errs = append(errs, field.Required(path.Child("apiVersion"), ""))
	case strings.Contains(version, "/"):
		errs = append(errs, field.Invalid(path.Child("apiVersion"), k.APIVersion,
			"unexpected GroupVersion string: "+k.APIVersion))
	default:
		if !found {
			group, version = "", group
		}
		errs = append(errs, checkGroupVersion(group, version, k.APIVersion, path.Child("apiVersion"))...)
	}
	if k.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), ""))
	} else if faults := validation.IsDNS1035Label(strings.ToLower(k.Kind)); len(faults) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), k.Kind,
			"may have mixed case, but should otherwise match: "+strings.Join(faults, ",")))
	}
	return errs
}

// checkGroupVersion checks the parts of an apiVersion.
func checkGroupVersion(group, version, apiVersion string, path *field.Path) (errs field.ErrorList) {
	if group != "" {
		if faults := validation.IsDNS1123Subdomain(group); len(faults) > 0 {
			errs = append(errs, field.Invalid(path, group, strings.Join(faults, ",")))
		}
	}
	if version == "" {
		return append(errs, field.Invalid(path, apiVersion, "version must be specified"))
	}
	if faults := validation.IsDNS1035Label(version); len(faults) > 0 {
		errs = append(errs, field.Invalid(path, version, strings.Join(faults, ",")))
	}
	return errs
}

// checkConstraints checks the resources that a policy is for, which are required.
func checkConstraints(m *v1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := checkMatch(m, path)
	if len(m.ResourceRules) == 0 {
		errs = append(errs, field.Required(path.Child("resourceRules"), ""))
	}
	return errs
}

// checkMatch checks the resources that a policy or a binding is for. m may be nil.
func checkMatch(m *v1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	errs := slices.Concat(
		checkSupported(path.Child("matchPolicy"), *m.MatchPolicy, v1.Equivalent, v1.Exact),
		checkSelector(m.NamespaceSelector, path.Child("namespaceSelector")),
		checkSelector(m.ObjectSelector, path.Child("objectSelector")))
	for i := range m.ResourceRules {
		errs = append(errs, checkNamedRule(&m.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, checkNamedRule(&m.ExcludeResourceRules[i], path.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func checkNamedRule(r *v1.NamedRuleWithOperations, path *field.Path) (errs field.ErrorList) {
	for i, name := range r.ResourceNames {
		at := path.Child("resourceNames").Index(i)
		errs = append(errs, invalid(at, name, content.IsPathSegmentName(name)...)...)
		if slices.Contains(r.ResourceNames[:i], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
	}
	return append(errs, checkRule(&r.RuleWithOperations, path)...)
}

func checkMutatingPolicy(p *v1.MutatingAdmissionPolicy) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	x := withVariables(spec.ParamKind)
	errs := slices.Concat(
		checkSupported(path.Child("failurePolicy"), *spec.FailurePolicy, v1.Fail, v1.Ignore),
		checkParamKind(spec.ParamKind, path.Child("paramKind")),
		checkConstraints(spec.MatchConstraints, path.Child("matchConstraints")),
		checkMutatingOperations(spec.MatchConstraints, path.Child("matchConstraints")),
		x.checkConditions(spec.MatchConditions, path.Child("matchConditions")),
		x.checkVariables(spec.Variables, path.Child("variables")),
	)
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(path.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, x.checkMutation(&spec.Mutations[i], path.Child("mutations").Index(i))...)
	}
	if spec.ReinvocationPolicy == "" {
		errs = append(errs, field.Required(path.Child("reinvocationPolicy"), ""))
	} else {
		errs = append(errs, checkSupported(path.Child("reinvocationPolicy"), spec.ReinvocationPolicy,
			v1.IfNeededReinvocationPolicy, v1.NeverReinvocationPolicy)...)
	}
	return append(errs, checkNameSuffix(p.Name)...)
}

// checkMutatingOperations returns an error for each operation whose objects cannot be changed.
func checkMutatingOperations(m *v1.MatchResources, path *field.Path) (errs field.ErrorList) {
	if m == nil {
		return nil
	}
	for _, r := range m.ResourceRules {
		for _, operation := range r.Operations {
			errs = append(errs, checkSupported(path.Child("resourceRules", "operations"), operation,
				v1.OperationAll, v1.Connect, v1.Create, v1.Update)...)
		}
	}
	return errs
}

// checkMutation checks that a mutation has the member that its type names, and no other.
func (e expressions) checkMutation(m *v1.Mutation, path *field.Path) (errs field.ErrorList) {
	if m.PatchType == "" {
		return field.ErrorList{field.Required(path.Child("patchType"), "")}
	}
	errs = checkSupported(path.Child("patchType"), m.PatchType, v1.PatchTypeApplyConfiguration, v1.PatchTypeJSONPatch)
	if len(errs) > 0 {
		return errs
	}
	name, other, isOther := "jsonPatch", "applyConfiguration", m.ApplyConfiguration != nil
	var expression *string
	var accessor func(trimmed string) cel.ExpressionAccessor
	if m.PatchType == v1.PatchTypeApplyConfiguration {
		name, other, isOther = other, name, m.JSONPatch != nil
		accessor = func(text string) cel.ExpressionAccessor {
			return &patch.ApplyConfigurationCondition{Expression: text}
		}
		if m.ApplyConfiguration != nil {
			expression = &m.ApplyConfiguration.Expression
		}
	} else {
		accessor = func(text string) cel.ExpressionAccessor { return &patch.JSONPatchCondition{Expression: text} }
		if m.JSONPatch != nil {
			expression = &m.JSONPatch.Expression
		}
	}
	when := "specified when patchType is " + string(m.PatchType)
	switch at := path.Child(name); {
	case expression == nil:
		errs = append(errs, field.Required(at, "must be "+when))
	case strings.TrimSpace(*expression) == "":
		errs = append(errs, field.Required(at.Child("expression"), ""))
	default:
		trimmed := strings.TrimSpace(*expression)
		errs = append(errs, e.check(at.Child("expression"), accessor(trimmed), trimmed,
			cel.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: true})...)
	}
	if isOther {
		errs = append(errs, field.Invalid(path.Child(other), "{"+other+"}", "must not be "+when))
	}
	return errs
}

func checkValidatingBinding(b *v1.ValidatingAdmissionPolicyBinding) (errs field.ErrorList) {
	spec, path := &b.Spec, field.NewPath("spec")
	if spec.PolicyName != "" {
		errs = checkPolicyName(spec.PolicyName, path)
	}
	errs = slices.Concat(errs,
		checkParamRef(spec.ParamRef, path.Child("paramRef")),
		checkMatch(spec.MatchResources, path.Child("matchResources")),
		checkActions(spec.ValidationActions, path.Child("validationActions")),
		checkNameSuffix(b.Name))
	// Kubernetes checks the required members of this kind last.
	if spec.PolicyName == "" {
		errs = append(errs, field.Required(path.Child("policyName"), ""))
	}
	if len(spec.ValidationActions) == 0 {
		errs = append(errs, field.Required(path.Child("validationActions"), ""))
	}
	return errs
}

func checkMutatingBinding(b *v1.MutatingAdmissionPolicyBinding) field.ErrorList {
	spec, path := &b.Spec, field.NewPath("spec")
	return slices.Concat(
		checkPolicyName(spec.PolicyName, path),
		checkParamRef(spec.ParamRef, path.Child("paramRef")),
		checkMatch(spec.MatchResources, path.Child("matchResources")),
		checkMutatingOperations(spec.MatchResources, path.Child("matchResources")),
		checkNameSuffix(b.Name))
}

func checkPolicyName(name string, spec *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(spec.Child("policyName"), "")}
	}
	return invalid(spec.Child("policyName"), name, apivalidation.NameIsDNSSubdomain(name, false)...)
}

func checkParamRef(r *v1.ParamRef, path *field.Path) (errs field.ErrorList) {
	if r == nil {
		return nil
	}
	const exclusive = "name and selector are mutually exclusive"
	if r.Name != "" {
		errs = append(errs, invalid(path.Child("name"), r.Name, content.IsPathSegmentName(r.Name)...)...)
		if r.Selector != nil {
			errs = append(errs, field.Forbidden(path.Child("name"), exclusive))
		}
	}
	errs = append(errs, checkSelector(r.Selector, path.Child("selector"))...)
	switch {
	case r.Name != "" && r.Selector != nil:
		errs = append(errs, field.Forbidden(path.Child("selector"), exclusive))
	case r.Name == "" && r.Selector == nil:
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	}
	if action := r.ParameterNotFoundAction; action == nil || *action == "" {
		errs = append(errs, field.Required(path.Child("parameterNotFoundAction"), ""))
	} else {
		errs = append(errs,
			checkSupported(path.Child("parameterNotFoundAction"), *action, v1.DenyAction, v1.AllowAction)...)
	}
	return errs
}

func checkActions(all []v1.ValidationAction, path *field.Path) (errs field.ErrorList) {
	for i, action := range all {
		errs = append(errs, checkSupported(path.Index(i), action, v1.Audit, v1.Deny, v1.Warn)...)
		if slices.Contains(all[:i], action) {
			errs = append(errs, field.Duplicate(path.Index(i), action))
		}
	}
	if slices.Contains(all, v1.Deny) && slices.Contains(all, v1.Warn) {
		errs = append(errs, field.Invalid(path, all, "must not contain both Deny and Warn (repeating the same validation "+
			"failure information in the API response and headers serves no purpose)"))
	}
	return errs
}

// reservedNames cannot be names of variables.
var (
	reservedNames = strings.Fields("true false null in as break const continue else for function if import let loop " +
		"package namespace return var void while")
	identifier = regexp.MustCompile("^[_a-zA-Z][_a-zA-Z0-9]*$")
)

// checkVariables checks the variables of a policy, which later expressions can use.
func (e expressions) checkVariables(all []v1.Variable, path *field.Path) (errs field.ErrorList) {
	for i, v := range all {
		path := path.Index(i)
		switch {
		case strings.TrimSpace(v.Name) == "":
			errs = append(errs, field.Required(path.Child("name"), "name is not specified"))
		case !identifier.MatchString(v.Name) || slices.Contains(reservedNames, v.Name):
			errs = append(errs, field.Invalid(path.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(path.Child("expression"), "expression is not specified"))
			continue
		}
		o := withAuthorizer
		o.HasParams = e.params
		result := e.compiler.CompileAndStoreVariable(
			&validating.Variable{Name: v.Name, Expression: v.Expression}, o, environment.NewExpressions)
		errs = append(errs, compilationErrors(path.Child("expression"), v.Expression, result.Error)...)
	}
	return errs
}
