package rules

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/memo"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// A custom has the rules for the objects of a custom resource, including the rules that package crd
// does not apply: pruning, defaults and CEL. They use Kubernetes' own code.
type custom struct {
	group, kind string
	*customSchema
	// validate checks an object against the schema, and validateStatus only its status; see
	// [kubeapi.Resource]. validateStatus is nil if the objects have no status subresource.
	validate, validateStatus func(object []byte, nulls bool) field.ErrorList
}

// A customSchema is a schema for pruning, defaults and CEL. It is immutable.
type customSchema struct {
	schema *structural.Structural
	// cel returns the validator of the CEL rules, or nil if there are none. The first call compiles
	// the rules, which takes longer than everything else in an Env.
	cel func() *cel.Validator
}

// newCustom returns the rules for the objects of the custom resource d.
func newCustom(d kubeapi.Resource) (*custom, error) {
	openAPI := d.Schema.OpenAPI
	s, err := schemas.Get(string(openAPI), func() (*customSchema, error) { return parseSchema(openAPI) })
	if err != nil {
		return nil, err
	}
	c := &custom{d.Group, d.Kind, s, d.Validate, d.ValidateStatus}
	if d.NoStatus {
		c.validateStatus = nil
	}
	return c, nil
}

// schemas has the schemas of all Envs, by their texts.
var schemas memo.Memo[*customSchema]

func parseSchema(openAPI []byte) (*customSchema, error) {
	var versioned v1.JSONSchemaProps
	if err := json.Unmarshal(openAPI, &versioned); err != nil {
		return nil, err
	}
	var props apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&versioned, &props, nil); err != nil {
		return nil, err
	}
	s, err := structural.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(s); err != nil {
		return nil, err
	}
	compiled := sync.OnceValue(func() *cel.Validator { return cel.NewValidator(s, true, celconfig.PerCallLimit) })
	return &customSchema{s, compiled}, nil
}

// checkNulls returns the errors in an object that an apply would store, if the object has nulls
// that the schema does not allow. These make an apply fail, but complete removes them from the
// objects of other writes. checkNulls accepts all other objects, because admit validates them.
func (c *custom) checkNulls(object []byte, apply bool) field.ErrorList {
	if !apply {
		return nil
	}
	errs, others := c.validate(object, true), c.validate(object, false)
	hasNulls := slices.ContainsFunc(errs, func(e *field.Error) bool {
		return !slices.ContainsFunc(others, func(o *field.Error) bool { return o.Error() == e.Error() })
	})
	switch {
	case !hasNulls:
		return nil
	case slices.ContainsFunc(errs, blocksRules) && c.cel() != nil:
		return append(errs, field.Invalid(nil, nil, unchecked))
	}
	return errs
}

// admit checks a complete object. As in Kubernetes, an update may leave a value that was already
// invalid.
func (c *custom) admit(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
	validate := c.validate
	// Only writes to the status subresource, if there is one, change the status.
	if old != nil && c.validateStatus != nil &&
		!rawjson.Equal(rawjson.Lookup(old.Data, "status"), rawjson.Lookup(data, "status")) {
		validate = c.validateStatus
	}
	object, errs, err := c.check(ctx, data, validate)
	if err != nil {
		return nil, err
	}
	if len(errs) > 0 && old != nil {
		_, known, err := c.check(ctx, old.Data, validate)
		if err != nil {
			return nil, err
		}
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
			return slices.ContainsFunc(known, func(k *field.Error) bool { return k.Error() == e.Error() })
		})
	}
	errs, err = c.appendRules(ctx, errs, old, object)
	if err != nil || len(errs) == 0 {
		return data, err
	}
	return nil, c.invalid(object, errs)
}

func (c *custom) invalid(object map[string]any, errs field.ErrorList) error {
	m, _ := object["metadata"].(map[string]any)
	name, _ := m["name"].(string)
	return apistatus.Invalid(c.group, c.kind, name, errs)
}

// complete implements [kubeapi.Resource.Complete].
func (c *custom) complete(data []byte, applied bool) ([]byte, error) {
	return rewrite(data, func(object map[string]any) error {
		if !applied {
			if err := objectmeta.Coerce(nil, object, c.schema, false, false); err != nil {
				return c.invalid(object, field.ErrorList{err})
			}
			defaulting.PruneNonNullableNullsWithoutDefaults(object, c.schema)
		}
		// An apply may set any field of an object without properties.
		pruning.Prune(object, c.schema, true)
		defaulting.Default(object, c.schema)
		return nil
	})
}

// check decodes an object. It also returns the errors that validate returns, and the errors in
// embedded metadata. It checks no CEL rules.
func (c *custom) check(
	ctx context.Context, data []byte, validate func([]byte, bool) field.ErrorList,
) (object map[string]any, errs field.ErrorList, err error) {
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, nil, err
	}
	return object, append(validate(data, false), objectmeta.Validate(ctx, nil, object, c.schema, false)...), nil
}

// appendRules appends the errors of the CEL rules that object breaks to errs, the errors of its
// schema. As in Kubernetes, the rules are not checked if a value may have the wrong type.
func (c *custom) appendRules(
	ctx context.Context, errs field.ErrorList, old *listwatch.Object, object map[string]any,
) (field.ErrorList, error) {
	validator := c.cel()
	switch {
	case validator == nil:
		return errs, nil
	case slices.ContainsFunc(errs, blocksRules):
		return append(errs, field.Invalid(nil, nil, unchecked)), nil
	}
	var before any
	var o []cel.Option
	if old != nil {
		var stored map[string]any
		if err := utiljson.Unmarshal(old.Data, &stored); err != nil {
			return nil, err
		}
		before = stored
		o = append(o, cel.WithRatcheting(
			common.NewCorrelatedObject(object, stored, &model.Structural{Structural: c.schema})))
	}
	broken, _ := validator.Validate(ctx, nil, c.schema, object, before, celconfig.RuntimeCELCostBudget, o...)
	return append(errs, broken...), nil
}

const unchecked = "some validation rules were not checked because the object was invalid; " +
	"correct the existing errors to complete validation"

func blocksRules(e *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid,
	}, e.Type)
}
