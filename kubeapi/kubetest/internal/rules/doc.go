// Package rules has the built-in kinds of a cluster, and the rules for objects of built-in kinds
// and of custom resources: defaults, checks, pruning and CEL.
//
// kinds.go lists the kinds, defaults.go has their rules, builtin.go applies them, and namespace.go
// has the rule for all namespaced objects. definition.go reads CustomResourceDefinitions, and
// custom.go has the rules of custom resources.
package rules

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
)

// An Admit checks and completes an object that would replace old; see store.CollectionSpec.
type Admit func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error)

// Metadata returns the metadata of an object.
func Metadata(object []byte) (*listwatch.Metadata, error) {
	decoded, err := listwatch.Decode[struct {
		listwatch.Metadata `json:"metadata"`
	}](&listwatch.Object{Data: object})
	return &decoded.Metadata, err
}

// KeyOf returns the key of an object, whose types have been checked.
func KeyOf(object []byte) listwatch.Key {
	m := jsonvalue.Value(object).At("metadata")
	return listwatch.Key{Namespace: m.At("namespace").Text(), Name: m.At("name").Text()}
}

// IsBeingDeleted reports whether an object waits for the removal of its finalizers.
func IsBeingDeleted(object []byte) bool {
	return rawjson.Lookup(object, "metadata", "deletionTimestamp") != nil
}
