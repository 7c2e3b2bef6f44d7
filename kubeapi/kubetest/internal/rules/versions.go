package rules

import (
	"bytes"
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
	versions map[string]*custom // all of them, by apiVersion
	strategy kubeapi.Converter
}

// read converts stored objects. As in Kubernetes, an object first gets the defaults of its own
// version.
func (c conversion) read(ctx context.Context, object []byte, apiVersion string) ([]byte, error) {
	from, err := c.versionOf(object)
	if err != nil {
		return nil, err
	}
	object, err = rewrite(object, func(o map[string]any) error {
		defaulting.PruneNonNullableNullsWithoutDefaults(o, from.schema)
		defaulting.Default(o, from.schema)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.write(ctx, object, apiVersion)
}

// write converts objects to be stored. As in Kubernetes, an object loses the fields that the other
// version does not have.
func (c conversion) write(ctx context.Context, object []byte, apiVersion string) ([]byte, error) {
	from, err := c.versionOf(object)
	to := c.versions[apiVersion]
	if err != nil || from == to {
		return object, err
	}
	if object, err = c.strategy(ctx, object, apiVersion); err != nil {
		return nil, err
	}
	return rewrite(object, func(o map[string]any) error {
		pruning.Prune(o, to.schema, true)
		return nil
	})
}

// versionOf returns the rules of the version of an object.
func (c conversion) versionOf(object []byte) (*custom, error) {
	name, err := rawjson.String(rawjson.Lookup(object, "apiVersion"))
	if v := c.versions[name]; err == nil && v != nil {
		return v, nil
	}
	return nil, &listwatch.Error{
		Code: listwatch.Corrupt, Message: "request to convert CR from an invalid group/version: " + name,
	}
}

// rewrite returns an object after change. The other parts of the object keep their spelling.
func rewrite(data []byte, change func(map[string]any) error) ([]byte, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	before, err := rawjson.Encode(object)
	if err != nil {
		return nil, err
	}
	if err := change(object); err != nil {
		return nil, err
	}
	after, err := rawjson.Encode(object)
	if err != nil || bytes.Equal(before, after) {
		return data, err
	}
	return rawjson.Rebase(data, before, after)
}
