package rules

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// A custom has the rules for the objects of a custom resource that package crd does not apply:
// pruning, defaults and CEL. They are Kubernetes' own code.
type custom struct {
	group, kind string
	schema      *structural.Structural
	// cel returns the validator of the CEL rules, or nil if there are none. The first call compiles
	// the rules, which takes longer than everything else in an Env.
	cel func() *cel.Validator
}

// Custom returns the rules for the objects of the custom resource d.
func Custom(d crd.Definition) (Admit, error) {
	var versioned v1.JSONSchemaProps
	if err := json.Unmarshal(d.Schema.OpenAPI, &versioned); err != nil {
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
	return (&custom{d.Group, d.Kind, s, compiled}).admit, nil
}

// admit removes unknown fields, fills in defaults and checks the CEL rules.
func (c *custom) admit(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	before, err := rawjson.Encode(object)
	if err != nil {
		return nil, err
	}
	pruning.Prune(object, c.schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.schema)
	defaulting.Default(object, c.schema)
	after, err := rawjson.Encode(object)
	if err != nil {
		return nil, err
	}
	if data, err = rawjson.Rebase(data, before, after); err != nil {
		return nil, err
	}
	return data, c.checkRules(ctx, old, object)
}

// checkRules returns an error if object breaks a CEL rule. As in Kubernetes, an update may leave a
// value that already broke the rule.
func (c *custom) checkRules(ctx context.Context, old *listwatch.Object, object map[string]any) error {
	validator := c.cel()
	if validator == nil {
		return nil
	}
	var before any
	var o []cel.Option
	if old != nil {
		var stored map[string]any
		if err := utiljson.Unmarshal(old.Data, &stored); err != nil {
			return err
		}
		before = stored
		o = append(o, cel.WithRatcheting(
			common.NewCorrelatedObject(object, stored, &model.Structural{Structural: c.schema})))
	}
	errs, _ := validator.Validate(ctx, nil, c.schema, object, before, celconfig.RuntimeCELCostBudget, o...)
	if len(errs) == 0 {
		return nil
	}
	m, _ := object["metadata"].(map[string]any)
	name, _ := m["name"].(string)
	return apistatus.Invalid(c.group, c.kind, name, errs)
}
