package kubetest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	authuser "k8s.io/apiserver/pkg/authentication/user"
)

// This file has the checks of kube-apiserver that a user who writes an admission policy or a
// binding may read its parameters. Otherwise a user could learn of objects by what a policy
// decides. The causes are those of kube-apiserver, which has the checks in
// pkg/registry/admissionregistration/*/authz.go.

// A policy has the members of admission policies and their bindings that concern parameters.
type policy struct {
	Spec struct {
		ParamKind  *admissionv1.ParamKind `json:"paramKind"`
		ParamRef   *admissionv1.ParamRef  `json:"paramRef"`
		PolicyName string                 `json:"policyName"`
	} `json:"spec"`
}

// policiesOf has the resource of the policies that the bindings of a resource refer to.
var policiesOf = map[string]string{
	"validatingadmissionpolicybindings": "validatingadmissionpolicies",
	"mutatingadmissionpolicybindings":   "mutatingadmissionpolicies",
}

// withReadableParameters returns the rules of admit for the objects of r, and the rule that a user
// may read the parameters of policies and bindings, if r has these.
func withReadableParameters(a *authority, r kubeapi.Resource, admit rules.Admit) rules.Admit {
	if r.Group != admissionv1.GroupName {
		return admit
	}
	return checkedForUsers(admit, func(
		ctx context.Context, user kubeapi.User, old *listwatch.Object, data []byte,
	) error {
		var before, now policy
		err := json.Unmarshal(data, &now)
		if err == nil && old != nil {
			err = json.Unmarshal(old.Data, &before)
		}
		if err != nil {
			return err
		}
		fault := policyWriter{a, user}.fault(ctx, r, &before, &now)
		if fault == nil {
			return nil
		}
		m, err := rules.Metadata(data)
		if err != nil {
			return err
		}
		return apistatus.Invalid(r.Group, r.Kind, m.Name, field.ErrorList{fault})
	})
}

// A policyWriter is a user who writes a policy or a binding.
type policyWriter struct {
	*authority
	user kubeapi.User
}

// fault returns an error if the user may not read the parameters of now, an object of r that
// replaces before. As in Kubernetes, a binding is checked even if its parameters stay the same.
func (w policyWriter) fault(ctx context.Context, r kubeapi.Resource, before, now *policy) *field.Error {
	path, kind := field.NewPath("spec"), now.Spec.ParamKind
	if policies := policiesOf[r.Plural]; policies != "" {
		if err := w.checkParamRef(ctx, policies, now); err != nil {
			return field.Forbidden(path.Child("paramRef"), err.Error())
		}
		return nil
	}
	if kind == nil || before.Spec.ParamKind != nil && *before.Spec.ParamKind == *kind {
		return nil
	}
	if err := w.checkParamKind(ctx, *kind); err != nil {
		return field.Forbidden(path.Child("paramKind"), err.Error())
	}
	return nil
}

// checkParamKind returns an error if the user may not read all parameters of a kind.
func (w policyWriter) checkParamKind(ctx context.Context, kind admissionv1.ParamKind) error {
	resource, _, _ := w.parameterResource(&kind)
	if w.authorize(ctx, w.user, kubeapi.Attributes{Verb: "get", Resource: resource, Namespace: "*", Name: "*"}) == nil {
		return nil
	}
	return fmt.Errorf(`user %v must have "get" permission on all objects of the referenced paramKind `+
		`(kind=%s, apiVersion=%s)`, shown(w.user), kind.Kind, kind.APIVersion)
}

// checkParamRef returns an error if the user may not read the parameters of a binding. policies is
// the resource of the bound policy.
func (w policyWriter) checkParamRef(ctx context.Context, policies string, binding *policy) error {
	ref := binding.Spec.ParamRef
	if ref == nil {
		return nil
	}
	var bound policy
	o, policyErr := w.api.named(policies+"."+admissionv1.GroupName).Collection.
		Get(ctx, listwatch.Key{Name: binding.Spec.PolicyName})
	if policyErr == nil {
		policyErr = json.Unmarshal(o.Data, &bound)
	}
	kind := bound.Spec.ParamKind
	resource, versionErr, kindErr := w.parameterResource(kind)
	verb := "get"
	if ref.Name == "" {
		verb = "list"
	}
	err := w.authorize(ctx, w.user,
		kubeapi.Attributes{Verb: verb, Resource: resource, Namespace: ref.Namespace, Name: ref.Name})
	const rest = `to determine minimum required permissions and user %v does not have "%v" permission for all ` +
		`groups, versions and resources`
	switch {
	case err == nil:
		return nil
	case policyErr != nil:
		return fmt.Errorf("unable to get policy %s "+rest, binding.Spec.PolicyName, shown(w.user), verb)
	case versionErr != nil:
		return fmt.Errorf("unable to parse paramKind %v "+rest, (*shownKind)(kind), shown(w.user), verb)
	case kindErr != nil:
		return fmt.Errorf("unable to resolve paramKind %v "+rest, (*shownKind)(kind), shown(w.user), verb)
	}
	return fmt.Errorf(`user %v does not have "%v" permission on the object referenced by paramRef`, shown(w.user), verb)
}

// parameterResource returns the resource of a kind of parameters, which may be nil. An asterisk
// stands for a part that is not known, so that the user needs a right for all.
func (w policyWriter) parameterResource(
	kind *admissionv1.ParamKind,
) (r kubeapi.Resource, versionErr, kindErr error) {
	r = kubeapi.Resource{Group: "*", Version: "*", Plural: "*"}
	if kind == nil {
		return r, nil, nil
	}
	version, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return r, err, nil
	}
	r.Group, r.Version = version.Group, version.Version
	served, found := w.api.version(kind.APIVersion, kind.Kind)
	if !found {
		return r, nil, fmt.Errorf("there is no kind %q in version %q", kind.Kind, kind.APIVersion)
	}
	r.Plural = served.Plural
	return r, nil, nil
}

// A shownKind is printed as the errors of kube-apiserver show a kind of parameters.
type shownKind struct{ APIVersion, Kind string }

// shown returns u in the form that the errors of kube-apiserver show.
func shown(u kubeapi.User) authuser.Info {
	return &authuser.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups}
}
