package crd

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/kubeapi"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// newValidator returns a function that checks the values of an object as Kubernetes checks custom
// resources, except for CEL rules. If nulls is false, the returned function first removes nulls
// with dropNulls. It is safe for concurrent use.
func newValidator(s *structural.Structural, scale *kubeapi.Scale) func(object []byte, nulls bool) field.ErrorList {
	openAPI := s.ToKubeOpenAPI()
	prepare(openAPI)
	validator := validate.NewSchemaValidator(openAPI, nil, "", strfmt.Default)
	return func(object []byte, nulls bool) field.ErrorList {
		var value map[string]any
		if err := json.Unmarshal(object, &value); err != nil {
			return field.ErrorList{field.Invalid(nil, "", err.Error())}
		}
		if !nulls {
			dropNulls(value, s)
		}
		var errs field.ErrorList
		for _, err := range validator.Validate(value).Errors {
			errs = append(errs, fieldError(err))
		}
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s, value)...)
		if scale != nil {
			errs = append(errs, checkReplicas(value, scale.SpecReplicasPath)...)
			errs = append(errs, checkReplicas(value, scale.StatusReplicasPath)...)
			errs = append(errs, checkSelector(value, scale.LabelSelectorPath)...)
		}
		slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
		return errs
	}
}

// dropNulls removes each member of value that is null although s does not allow null, as Kubernetes
// does before it validates. (In a cluster, such a member then gets its default.) Kubernetes' own
// function is not used, because it would link CEL, which adds 15 MB to the program.
func dropNulls(value any, s *structural.Structural) {
	if s == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			t, ok := s.Properties[name]
			switch {
			case ok:
			case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
				t = *s.AdditionalProperties.Structural
			default:
				continue
			}
			if member == nil && !t.Nullable {
				delete(value, name)
			} else {
				dropNulls(member, &t)
			}
		}
	case []any:
		for _, item := range value {
			dropNulls(item, s.Items)
		}
	}
}

// checkReplicas checks the number of replicas at path in an object with a scale subresource.
func checkReplicas(object map[string]any, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(object, memberNames(path)...)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, "must be an integer in an object")}
	case replicas < 0 || replicas > math.MaxInt32:
		return field.ErrorList{
			field.Invalid(field.NewPath(path), replicas, "must be a non-negative integer of 32 bits"),
		}
	}
	return nil
}

// checkSelector checks the label selector at path in an object with a scale subresource. If path is
// empty, the scale has no selector.
func checkSelector(object map[string]any, path string) field.ErrorList {
	if path == "" {
		return nil
	}
	if selector, _, err := unstructured.NestedString(object, memberNames(path)...); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(path), selector, "must be a string in an object")}
	}
	return nil
}

func memberNames(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// prepare changes s and the schemas in it for the validator, which does not know Kubernetes'
// extensions. It makes fields with a default optional, because a cluster would fill in the default.
func prepare(s *spec.Schema) {
	if s == nil {
		return
	}
	if s.Extensions["x-kubernetes-int-or-string"] == true {
		s.Type = spec.StringOrArray{"integer", "string"}
	}
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return s.Properties[name].Default != nil })
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

// fieldError converts an error of the validator to the error that Kubernetes reports.
func fieldError(err error) *field.Error {
	v, ok := errors.AsType[*openapierrors.Validation](err)
	if !ok {
		return field.Invalid(nil, "", err.Error())
	}
	var path *field.Path
	if name := strings.TrimPrefix(v.Name, "."); name != "" {
		path = field.NewPath(name)
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
