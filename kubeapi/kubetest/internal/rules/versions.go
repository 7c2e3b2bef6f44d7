package rules

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A conversion converts the objects of a definition between its versions.
type conversion struct {
	versions map[string]*custom // by apiVersion
	strategy kubeapi.Converter
}

// convert is a [kubeapi.Converter]. As in Kubernetes, an object first gets the defaults of its own
// version, and then loses the fields that the other version does not have.
func (c conversion) convert(ctx context.Context, object []byte, apiVersion string) ([]byte, error) {
	from, err := rawjson.String(rawjson.Lookup(object, "apiVersion"))
	before, after := c.versions[from], c.versions[apiVersion]
	if err != nil || before == nil || after == nil {
		return nil, &listwatch.Error{
			Code: listwatch.Corrupt, Message: "request to convert CR from an invalid group/version: " + from,
		}
	}
	object, err = rewrite(object, func(o map[string]any) {
		defaulting.PruneNonNullableNullsWithoutDefaults(o, before.schema)
		defaulting.Default(o, before.schema)
	})
	if err != nil || from == apiVersion {
		return object, err
	}
	if object, err = c.strategy(ctx, object, apiVersion); err != nil {
		return nil, err
	}
	return rewrite(object, func(o map[string]any) { pruning.Prune(o, after.schema, true) })
}

// rewrite returns an object after change. The other parts of the object keep their spelling.
func rewrite(data []byte, change func(map[string]any)) ([]byte, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	before, err := rawjson.Encode(object)
	if err != nil {
		return nil, err
	}
	change(object)
	after, err := rawjson.Encode(object)
	if err != nil {
		return nil, err
	}
	return rawjson.Rebase(data, before, after)
}
