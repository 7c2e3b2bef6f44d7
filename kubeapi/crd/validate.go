package crd

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/kubeapi"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// A validator checks the values of an object as Kubernetes checks custom resources, except for CEL
// rules. It checks the object that a cluster would store: with the defaults, and without the nulls
// that the schema does not allow. It is immutable.
type validator struct {
	schema *structural.Structural
	whole  *validate.SchemaValidator
	status *validate.SchemaValidator // nil if the schema does not describe the status
	scale  *kubeapi.Scale            // nil if there is none
}

func newValidator(s *structural.Structural, scale *kubeapi.Scale) *validator {
	openAPI := s.ToKubeOpenAPI()
	prepare(openAPI)
	v := &validator{schema: s, whole: validate.NewSchemaValidator(openAPI, nil, "", strfmt.Default), scale: scale}
	if status, ok := openAPI.Properties["status"]; ok {
		v.status = validate.NewSchemaValidator(&status, nil, "", strfmt.Default)
	}
	return v
}

// checkWhole returns the errors in an object; see [kubeapi.Resource.Validate].
func (v *validator) checkWhole(object []byte, nulls bool) field.ErrorList {
	return v.check(object, nulls, func(value map[string]any) field.ErrorList {
		errs := fieldErrors(nil, v.whole.Validate(value))
		if v.scale != nil {
			errs = append(errs, checkReplicas(value, v.scale.SpecReplicasPath)...)
		}
		return errs
	})
}

// checkStatus returns the errors in the status of an object; see [kubeapi.Resource.ValidateStatus].
// As in Kubernetes, the text of an error names the path below the status.
func (v *validator) checkStatus(object []byte, nulls bool) field.ErrorList {
	return v.check(object, nulls, func(value map[string]any) field.ErrorList {
		status, ok := value["status"]
		if !ok || v.status == nil {
			return nil
		}
		return fieldErrors(field.NewPath("status"), v.status.Validate(status))
	})
}

// check returns the errors that find returns for an object, and the errors of the checks that apply
// to writes of the object and of its status alike.
func (v *validator) check(object []byte, nulls bool, find func(value map[string]any) field.ErrorList) field.ErrorList {
	var value map[string]any
	if err := json.Unmarshal(object, &value); err != nil {
		return field.ErrorList{field.Invalid(nil, "", err.Error())}
	}
	if !nulls {
		dropNulls(value, v.schema)
	}
	fillIn(value, v.schema)
	errs := find(value)
	if v.scale != nil {
		errs = append(errs, checkReplicas(value, v.scale.StatusReplicasPath)...)
		errs = append(errs, checkSelector(value, v.scale.LabelSelectorPath)...)
	}
	return append(errs, listtype.ValidateListSetsAndMaps(nil, v.schema, value)...)
}

// dropNulls removes null members from value, unless the schema of the member allows null or has a
// default. Kubernetes does the same before it validates. Kubernetes' own functions for nulls and
// defaults are not used, because they would link CEL, which adds 15 MB to the program.
func dropNulls(value any, s *structural.Structural) {
	if s == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			t := memberSchema(s, name)
			if t != nil && member == nil && !t.Nullable && t.Default.Object == nil {
				delete(value, name)
			} else {
				dropNulls(member, t)
			}
		}
	case []any:
		for _, item := range value {
			dropNulls(item, s.Items)
		}
	}
}

// memberSchema returns the schema of a member of an object with the schema s, or nil.
func memberSchema(s *structural.Structural, name string) *structural.Structural {
	if t, ok := s.Properties[name]; ok {
		return &t
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// fillIn sets the defaults of s in value: for absent members, and for nulls that s does not allow.
func fillIn(value any, s *structural.Structural) {
	if s == nil {
		return
	}
	replaces := func(value any, t *structural.Structural) bool {
		return value == nil && t != nil && !t.Nullable && t.Default.Object != nil
	}
	switch value := value.(type) {
	case map[string]any:
		for name, t := range s.Properties {
			if _, ok := value[name]; !ok && t.Default.Object != nil {
				value[name] = runtime.DeepCopyJSONValue(t.Default.Object)
			}
		}
		for name, member := range value {
			t := memberSchema(s, name)
			if replaces(member, t) {
				value[name] = runtime.DeepCopyJSONValue(t.Default.Object)
			}
			fillIn(value[name], t)
		}
	case []any:
		for i, item := range value {
			if replaces(item, s.Items) {
				value[i] = runtime.DeepCopyJSONValue(s.Items.Default.Object)
			}
			fillIn(value[i], s.Items)
		}
	}
}

// checkReplicas checks the number of replicas at path in an object with a scale subresource. Its
// messages are the same as those of Kubernetes.
func checkReplicas(object map[string]any, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(object, memberNames(path)...)
	text := ""
	switch {
	case err != nil:
		text = err.Error()
	case replicas < 0:
		text = "should be a non-negative integer"
	case replicas > math.MaxInt32:
		text = fmt.Sprintf("should be less than or equal to %d", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), replicas, text)}
}

// checkSelector checks the label selector at path in an object with a scale subresource. If path is
// empty, the scale has no selector.
func checkSelector(object map[string]any, path string) field.ErrorList {
	if path == "" {
		return nil
	}
	if selector, _, err := unstructured.NestedString(object, memberNames(path)...); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(path), selector, err.Error())}
	}
	return nil
}

func memberNames(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// prepare changes s and the schemas in it for the validator, which does not know Kubernetes'
// extensions.
func prepare(s *spec.Schema) {
	if s == nil {
		return
	}
	if s.Extensions["x-kubernetes-int-or-string"] == true {
		s.Type = spec.StringOrArray{"integer", "string"}
	}
	for name, property := range s.Properties {
		prepare(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		prepare(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		prepare(s.AdditionalProperties.Schema)
	}
}

// fieldErrors converts the errors of a value at path, which may be nil, and sorts them by field.
func fieldErrors(path *field.Path, r *validate.Result) (errs field.ErrorList) {
	for _, err := range r.Errors {
		errs = append(errs, fieldError(path, err))
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// fieldError converts an error of the validator to the error that Kubernetes reports.
func fieldError(path *field.Path, err error) *field.Error {
	v, ok := errors.AsType[*openapierrors.Validation](err)
	if !ok {
		return field.Invalid(path, "", err.Error())
	}
	if name := strings.TrimPrefix(v.Name, "."); name != "" {
		path = path.Child(name)
	}
	value := v.Value
	if value == nil {
		value = ""
	}
	switch v.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "")
	case openapierrors.EnumFailCode:
		return field.NotSupported(path, v.Value, texts(v.Values))
	case openapierrors.TooLongFailCode:
		return field.TooLong(path, "", number(v.Valid))
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		return field.TooMany(path, number(v.Value), number(v.Valid))
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(path, value, v.Error())
	}
	return field.Invalid(path, value, v.Error())
}

// number returns v as an int, or -1 if v is not an integer.
func number(v any) int {
	if n, ok := v.(int64); ok {
		return int(n)
	}
	return -1
}

// texts converts values to strings. It returns strings unchanged and other values as JSON.
func texts(values []any) []string {
	var all []string
	for _, v := range values {
		text, ok := v.(string)
		if !ok {
			data, _ := json.Marshal(v) // the value was decoded from JSON
			text = string(data)
		}
		all = append(all, text)
	}
	return all
}
