package adapters

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// define creates a custom resource for this run and waits until it is served.
func (k *KubeServer) define(ctx context.Context) error {
	suffix := strings.TrimPrefix(k.run, "conformance-")
	r := resource{
		group: "conformance.example.com", version: "v1", plural: "things" + suffix,
		kind: "Thing" + suffix, namespaced: true,
	}
	name := r.String()
	if err := k.rest.do(ctx, "POST", definitionsPath, nil, definition(name, r), nil); err != nil {
		if errors.Is(err, listwatch.NotFound) {
			return invalidf("the server has neither ConfigMaps nor custom resources: set --resource to one of its " +
				"resources")
		}
		return err
	}
	k.definition = name
	return k.awaitServed(ctx, r)
}

// definition returns a CustomResourceDefinition for r. The objects of r may have any spec
// (Kubernetes, "Extend the Kubernetes API with CustomResourceDefinitions").
func definition(name string, r resource) map[string]any {
	type m = map[string]any
	spec := m{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": m{"phase": m{"type": "string"}},
	}
	return m{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": m{"name": name},
		"spec": m{
			"group": r.group, "scope": "Namespaced",
			"names": m{
				"plural": r.plural, "kind": r.kind, "listKind": r.kind + "List", "singular": strings.ToLower(r.kind),
			},
			"versions": []m{{
				"name": r.version, "served": true, "storage": true,
				"selectableFields": []m{{"jsonPath": ".spec.phase"}},
				"schema":           m{"openAPIV3Schema": m{"type": "object", "properties": m{"spec": spec}}},
			}},
		},
	}
}

// awaitServed waits until the objects of r can be listed.
func (k *KubeServer) awaitServed(ctx context.Context, r resource) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		found, err := k.discover(ctx, r)
		if err == nil && found != nil {
			if err = k.rest.do(ctx, "GET", r.path("default"), nil, nil, nil); err == nil {
				k.resource = *found
				return nil
			}
		}
		if err != nil && !errors.Is(err, listwatch.NotFound) && !errors.Is(err, listwatch.Unavailable) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return &listwatch.Error{
				Code: listwatch.Unavailable, Message: "the custom resource " + k.definition + " is not served",
				Err: context.Cause(ctx),
			}
		}
	}
}

func (k *KubeServer) removeDefinition(ctx context.Context) error {
	if k.definition == "" {
		return nil
	}
	return k.rest.do(ctx, "DELETE", definitionsPath+"/"+k.definition, nil, nil, nil)
}
