package accessreview

import (
	"fmt"

	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// This file has the checks of kube-apiserver for reviews, with its causes. Kubernetes has them in
// pkg/apis/authorization/validation, which other modules cannot import without all of Kubernetes.

// check returns an error of status 422 if r is invalid. As in Kubernetes, the error names neither
// the kind nor the name.
func check(r *authorizationv1.SubjectAccessReview) error {
	errs := checkSpec(r.Kind, &r.Spec)
	errs = append(errs, checkMetadata(r)...)
	if r.Kind == LocalKind {
		errs = append(errs, checkNamespace(r)...)
	}
	if len(errs) == 0 {
		return nil
	}
	return apistatus.Invalid(Group, "", "", errs)
}

// A path shows the attributes of a request for a path as the error of Kubernetes does.
type path struct{ Path, Verb string }

func checkSpec(kind string, s *authorizationv1.SubjectAccessReviewSpec) (errs field.ErrorList) {
	if (s.ResourceAttributes == nil) == (s.NonResourceAttributes == nil) {
		errs = append(errs, field.Invalid(field.NewPath("spec"), (*path)(s.NonResourceAttributes),
			"exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if kind != Kind && s.User == "" && len(s.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), s.User,
			"at least one of user or group must be specified"))
	}
	if a := s.ResourceAttributes; a != nil {
		at := field.NewPath("spec.resourceAttributes")
		errs = append(errs, checkFieldSelector(a.FieldSelector, at.Child("fieldSelector"))...)
		errs = append(errs, checkLabelSelector(a.LabelSelector, at.Child("labelSelector"))...)
	}
	return errs
}

func checkMetadata(r *authorizationv1.SubjectAccessReview) field.ErrorList {
	rest, want := r.ObjectMeta, "must be empty"
	rest.ManagedFields = nil
	if r.Kind == LocalKind {
		rest.Namespace, want = "", "must be empty except for namespace"
	}
	if equality.Semantic.DeepEqual(metav1.ObjectMeta{}, rest) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), r.ObjectMeta, want)}
}

// checkNamespace returns the faults that only a LocalSubjectAccessReview can have.
func checkNamespace(r *authorizationv1.SubjectAccessReview) (errs field.ErrorList) {
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), a.Namespace,
			"must match metadata.namespace"))
	}
	if a := r.Spec.NonResourceAttributes; a != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec.nonResourceAttributes"), (*path)(a),
			"disallowed on this kind of request"))
	}
	return errs
}

func checkFieldSelector(s *authorizationv1.FieldSelectorAttributes, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := checkForm(s.RawSelector, len(s.Requirements), at)
	o := metav1validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
	for i, r := range s.Requirements {
		at := at.Child("requirements").Index(i)
		errs = append(errs, metav1validation.ValidateFieldSelectorRequirement(r, o, at)...)
	}
	return errs
}

func checkLabelSelector(s *authorizationv1.LabelSelectorAttributes, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := checkForm(s.RawSelector, len(s.Requirements), at)
	o := metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
	for i, r := range s.Requirements {
		at := at.Child("requirements").Index(i)
		errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(r, o, at)...)
	}
	return errs
}

// checkForm checks that a selector has one of its two forms.
func checkForm(raw string, requirements int, at *field.Path) (errs field.ErrorList) {
	switch {
	case raw != "" && requirements > 0:
		errs = append(errs, field.Invalid(at.Child("rawSelector"), raw,
			"may not specified at the same time as requirements"))
	case raw == "" && requirements == 0:
		errs = append(errs, field.Required(at.Child("requirements"),
			fmt.Sprintf("when %s is specified, requirements or rawSelector is required", at)))
	}
	return errs
}
